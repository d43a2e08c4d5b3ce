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
