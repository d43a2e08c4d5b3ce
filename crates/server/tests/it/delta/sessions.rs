//! What is remembered between the two requests of the rsync family.

use super::*;

#[tokio::test]
async fn sessions_are_of_who_began_them_and_end() {
    let server = TestServer::start().await.stop().await;
    let clock = Arc::new(PushedClock::default());
    let pushed = Arc::clone(&clock);
    let server = TestServer::start_again(&server, |options| options.clock = pushed).await.unwrap();
    let device = server.device("ada").await;
    let place = Place::on(server, device).await;
    let (old, new) = (noise(50_000), noise(60_000));
    place.put("a", &old).await;
    place.put("b", &old).await;
    let begin = async |session: SessionId| {
        let (mut client, open) = RsyncClient::begin(place.plain, session, Tuning::Plus);
        let answer = place.send("a", body_of(&[open]), &[]).await;
        let mut parts = Vec::new();
        if answer.status == StatusCode::ACCEPTED {
            let keep = |part| {
                parts.push(part);
                Ok::<_, DeltaError>(())
            };
            client.take_sums(&answer.bytes, &mut &new[..], keep).unwrap();
        }
        (answer, client, body_of(&parts))
    };
    let id = || SessionId::from_bytes(random());
    let gone = refused(410, "session_gone");

    // Not at another path, and then not at its own: whoever takes it has it.
    let (_, _, recipe) = begin(id()).await;
    assert_eq!(place.send("b", recipe.clone(), &[]).await.refusal(), gone);
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not for another device of the same account.
    let (_, _, recipe) = begin(id()).await;
    let other = place.server.device("ada").await;
    assert_eq!(place.send_as(&other, "a", recipe.clone(), &[]).await.refusal(), gone);
    // Not broken off, and then it has ended.
    let broken = body_of(&[recipe[4..recipe.len() - 1].to_vec()]);
    assert_eq!(place.send("a", broken, &[]).await.refusal(), refused(400, "invalid"));
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not too late.
    let (_, _, recipe) = begin(id()).await;
    clock.push(Duration::from_secs(61));
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not too many, until those before may have been given up: then the oldest gives way.
    let mut recipes = Vec::new();
    for _ in 0..8 {
        clock.push(Duration::from_secs(1));
        let (answer, _, recipe) = begin(id()).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
        recipes.push(recipe);
    }
    assert_eq!(begin(id()).await.0.refusal(), refused(503, "unavailable"));
    clock.push(Duration::from_secs(3));
    assert_eq!(begin(id()).await.0.status, StatusCode::ACCEPTED);
    assert_eq!(begin(id()).await.0.refusal(), refused(503, "unavailable"));
    assert_eq!(place.send("a", recipes.remove(0), &[]).await.refusal(), gone);
    assert_eq!(place.send("a", recipes.remove(0), &[]).await.status, StatusCode::OK);
    // Not against another version.
    let (_, _, recipe) = begin(id()).await;
    place.put("a", b"of somebody else").await;
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), refused(409, "wrong_base"));
    assert_eq!(place.read("a").await, b"of somebody else");

    // What comes out as something else is thrown away, and the client begins again.
    let (_, client, mut recipe) = begin(id()).await;
    recipe[30_000] ^= 1;
    let answer = place.send("a", recipe, &[]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    assert_eq!(client.take_answer(&answer.bytes).unwrap(), Next::Again(Tuning::Careful));
    assert_eq!(place.read("a").await, b"of somebody else");
}

#[tokio::test]
async fn of_sessions_that_end_at_once_one_puts_its_version() {
    for is_reverse in [false, true] {
        let place = Place::start().await;
        let (old, edits) = rival_edits();
        place.put("a", &old).await;
        let mut bodies = Vec::new();
        for bytes in &edits {
            bodies.push(begin_by_family(&place, is_reverse, Tuning::Plus, bytes).await.1);
        }
        let sends = bodies.into_iter().map(|body| place.send("a", body, &[]));
        let answers = futures_util::future::join_all(sends).await;
        winner(&place, &edits, &answers).await;
    }
}
