//! How long threads wait.

use std::time::Duration;

use super::*;

#[test]
fn pauses_are_as_they_are_drawn() {
    let pause = |text: &str| plan(&format!("operation = \"upload\"\npause = {text}")).pause;
    for (text, mean, least) in [
        ("\"none\"", 0.0, 0.0),
        ("{ fixed = 10 }", 10.0, 10.0),
        ("{ uniform = [1, 3] }", 2.0, 1.0),
        ("{ exponential = 2.5 }", 2.5, 0.0),
        // Its mean is least * shape / (shape - 1).
        ("{ pareto = [3, 2] }", 3.0, 2.0),
        ("{ recorded = [1, 2, 6] }", 3.0, 1.0),
        ("{ replayed = [1, 2, 6] }", 3.0, 1.0),
    ] {
        let (pause, mut random) = (pause(text), Random::new(1));
        let drawn: Vec<f64> = (0..50_000).map(|number| pause.draw(number, &mut random)).collect();
        let found = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((found - mean).abs() <= mean * 0.03, "{text}: {found}");
        assert!(drawn.iter().all(|time| *time >= least), "{text}");
    }
}

#[test]
fn recorded_pauses_come_from_a_file_beside_the_plan_and_in_their_order_if_wanted() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("plans/one.toml");
    let read = |kind: &str, lines: &[u8]| {
        files::write(&room.path().join("plans/times/of-a-day.txt"), lines).unwrap();
        let text = format!("operation = \"upload\"\npause = {{ {kind} = \"times/of-a-day.txt\" }}");
        files::write(&path, text).unwrap();
        Plan::read(&path)
    };
    let lines = b"# what Ann did\n3\n\n  0.5  \r\n1e1 # she was at lunch\n";
    let draw = |pause: &Pause| {
        let mut random = Random::new(9);
        (0..7).map(|number| pause.draw(number, &mut random)).collect::<Vec<_>>()
    };
    let replayed = read("replayed", lines).unwrap().pause;
    assert_eq!(draw(&replayed), [3.0, 0.5, 10.0, 3.0, 0.5, 10.0, 3.0]);
    let recorded = read("recorded", lines).unwrap().pause;
    assert_eq!(recorded, plan("operation = \"upload\"\npause = { recorded = [3, 0.5, 10] }").pause);
    assert_ne!(draw(&recorded), draw(&replayed));

    for (lines, wanted) in [
        (&b"1\n\nsoon\n"[..], "of-a-day.txt, line 3: 'soon' is no time in seconds"),
        (b"1\n2 3\n", "line 2: '2 3' is no time"),
        (b"-1", "line 1: '-1' is no time"),
        (b"1\nNaN", "line 2: 'NaN' is no time"),
        (b"86401", "from 0 to a day"),
        (b"# nothing\n\n", "of-a-day.txt has no time in it"),
        (b"\xff", "of-a-day.txt is no text in UTF-8"),
    ] {
        let error = read("replayed", lines).unwrap_err();
        assert!(matches!(error, LabError::Benchmark { .. }), "{error:?}");
        assert!(
            error.to_string().contains("pause: ") && error.to_string().contains(wanted),
            "{error}"
        );
    }
    files::remove(&room.path().join("plans/times/of-a-day.txt")).unwrap();
    let error = Plan::read(&path).unwrap_err();
    let is_it = |path: &Path| path.ends_with("plans/times/of-a-day.txt");
    assert!(matches!(&error, LabError::Read { path, .. } if is_it(path)), "{error:?}");
}

#[test]
fn each_thread_replays_pauses_from_the_first_one_in_each_repetition() {
    // Whoever goes on where the first repetition ended waits for an hour.
    let text = "operation = \"upload\"\ntimes = 3\nrepetitions = 2\npause = { replayed = [0, 0.05, 3600] }";
    let mut looks = 0;
    let mut goes_on = |_: Progress<'_>| {
        looks += 1;
        looks < 300
    };
    let outcome = run(&plan(text), &Bad::default(), "run", None, &mut goes_on).unwrap();
    assert!(outcome.is_good(), "{outcome:?}");
    for records in outcome.records.chunks(3) {
        let second_pause = records[2].started - records[1].started;
        assert!(second_pause >= Duration::from_millis(50), "{records:?}");
    }
}
