use axum::body::Body;
use model::Timestamp;

use super::*;
use crate::services::files::Condition;
use crate::testing::TestApp;

#[tokio::test]
async fn an_upload_that_is_given_up_while_it_is_put_is_not_put() {
    let test = TestApp::start();
    let ([caller, _], workspace) = (test.devices, test.home.workspace());
    let app = Arc::clone(&test.app);
    let path = RelativePath::new(b"file").unwrap();
    let begin = async || {
        let state = app.begin_upload(caller, workspace, path.clone()).await.unwrap();
        let body = Body::from("content").into_data_stream();
        app.take_piece((caller, workspace), state.id, 0, body).await.unwrap();
        state.id
    };
    let put_at = |path| Ok(Put { path, condition: Condition::Any, modified: Timestamp::default() });
    let is_there = async || app.view(caller, workspace).await.unwrap().find(&path).is_some();

    let upload = begin().await;
    // Somebody presses "Cancel" once all has come.
    let give_up = |_: &Spooled| {
        app.drop_upload(caller, workspace, upload);
        Ok(())
    };
    let refused = app.commit_upload((caller, workspace), upload, put_at, give_up).await;
    assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
    assert!(!is_there().await);

    let upload = begin().await;
    app.commit_upload((caller, workspace), upload, put_at, |_| Ok(())).await.unwrap();
    assert!(is_there().await);
}
