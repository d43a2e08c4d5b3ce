use std::io;
use std::sync::Arc;

use axum::body::Body;
use content::WorkspaceKeys;
use content::delta::{ChunkClient, DeltaError, DeltaPart, Plain, SessionId, body_of};
use model::Timestamp;

use super::*;
use crate::services::files::Condition;
use crate::testing::TestApp;

const CHUNK_SIZE: u32 = 16 << 10;

fn put_at(path: RelativePath) -> Result<Put> {
    let modified = Timestamp::default();
    Ok(Put { path, condition: Condition::Any, modified, upload: None })
}

/// Uploads of one device to one path.
struct Place {
    test: TestApp,
    caller: Caller,
    workspace: WorkspaceId,
    path: RelativePath,
}

impl Place {
    fn start() -> Self {
        let test = TestApp::start();
        let ([caller, _], workspace) = (test.devices, test.home.workspace());
        Self { test, caller, workspace, path: RelativePath::new(b"file").unwrap() }
    }

    fn app(&self) -> &Arc<App> {
        &self.test.app
    }

    async fn upload(&self, bytes: &[u8]) -> OpId {
        let begun = self.app().begin_upload(self.caller, self.workspace, self.path.clone()).await;
        let id = begun.unwrap().id;
        let body = Body::from(bytes.to_vec()).into_data_stream();
        self.app().take_piece((self.caller, self.workspace), id, 0, body).await.unwrap();
        id
    }

    async fn commit(&self, id: OpId, check: impl FnOnce()) -> Result<(RelativePath, Applied)> {
        let checked = |_: &Spooled| {
            check();
            Ok(())
        };
        self.app().commit_upload((self.caller, self.workspace), id, put_at, checked).await
    }

    /// Which version is at the path.
    async fn version(&self) -> Option<u64> {
        let view = self.app().view(self.caller, self.workspace).await.unwrap();
        view.find(&self.path).map(|node| node.version)
    }

    /// A delta between two contents, as a body.
    fn delta(&self, old: &[u8], new: &[u8]) -> Vec<u8> {
        let keys =
            WorkspaceKeys::open(&self.test.home, None, Arc::clone(&self.app().random)).unwrap();
        let (plain, keys) = (Plain::of(&self.test.home).unwrap(), keys.content().clone());
        let base = ChunkClient::survey(&keys, CHUNK_SIZE, &mut &*old).unwrap();
        let mut client = ChunkClient::new(&keys, self.workspace, SessionId::from_bytes([1; 16]));
        let mut parts = Vec::new();
        let take = |part: DeltaPart| {
            parts.push(part.into_message(plain)?);
            Ok::<_, DeltaError>(())
        };
        client.send_delta(&base, None, &mut &*new, take).unwrap();
        body_of(&parts)
    }
}

#[tokio::test]
async fn an_upload_that_is_given_up_while_it_is_put_is_not_put() {
    let place = Place::start();
    let upload = place.upload(b"content").await;
    // Somebody presses "Cancel" once all has come.
    let give_up = || place.app().drop_upload(place.caller, place.workspace, upload);
    let refused = place.commit(upload, give_up).await;
    assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
    assert_eq!(place.version().await, None);

    let upload = place.upload(b"content").await;
    place.commit(upload, || ()).await.unwrap();
    assert!(place.version().await.is_some());
}

#[tokio::test]
async fn a_delta_that_is_given_up_while_it_is_worked_on_is_not_put() {
    let place = Place::start();
    let whose = (place.caller, place.workspace);
    let (old, new) = (b"content", b"content, and more");
    let upload = place.upload(old).await;
    place.commit(upload, || ()).await.unwrap();
    let version = place.version().await;

    let upload = place.upload(&place.delta(old, new)).await;
    let give_up = |path| {
        place.app().drop_upload(place.caller, place.workspace, upload);
        put_at(path)
    };
    let refused = place.app().take_uploaded_delta(whose, upload, give_up).await;
    assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
    assert_eq!(place.version().await, version);

    let upload = place.upload(&place.delta(old, new)).await;
    let taken = place.app().take_uploaded_delta(whose, upload, put_at).await;
    assert!(matches!(taken, Ok((_, DeltaAnswer::Put(_)))), "{taken:?}");
    assert_ne!(place.version().await, version);
}

/// Lets time pass while nothing else happens.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_upload_does_not_end_under_whoever_goes_on_with_it() {
    let place = Place::start();
    let whose = (place.caller, place.workspace);
    let begun = place.app().begin_upload(whose.0, whose.1, place.path.clone()).await.unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<io::Result<&[u8]>>();
    let pieces = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
    let body = Body::from_stream(pieces).into_data_stream();
    let app = Arc::clone(place.app());
    let piece = tokio::spawn(async move { app.take_piece(whose, begun.id, 0, body).await });
    sender.send(Ok(b"slow")).unwrap();
    while place.app().upload_state(whose.0, whose.1, begun.id).is_ok() {
        tokio::task::yield_now().await;
    }
    pass(2 * UPLOAD_LIFE).await;
    // Others begin theirs, and look what is old.
    place.upload(b"another").await;
    sender.send(Ok(b" and long")).unwrap();
    drop(sender);
    assert_eq!(piece.await.unwrap().unwrap().offset, 13);
    pass(UPLOAD_LIFE / 2).await;
    place.commit(begun.id, || ()).await.unwrap();
    assert!(place.version().await.is_some());
}

#[tokio::test]
async fn what_nobody_goes_on_with_keeps_no_place_from_who_puts_a_file() {
    let place = Place::start();
    let upload = place.upload(b"content").await;
    let kept = place.app().files.spools.free();
    pass(2 * UPLOAD_LIFE).await;
    let put = put_at(place.path.clone()).unwrap();
    place.app().check_put(place.caller, place.workspace, &put).await.unwrap();
    assert_eq!(place.app().files.spools.free(), kept + 1);
    let gone = place.commit(upload, || ()).await;
    assert!(matches!(gone, Err(ServerError::NotFound { .. })), "{gone:?}");
}
