use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn node(number: u16) -> NodeId {
    let mut bytes = [1; 16];
    bytes[..2].copy_from_slice(&number.to_le_bytes());
    NodeId::from_bytes(bytes)
}

/// Lets a file change every `pause`, and returns when it goes.
fn goes(pause: Duration, changes: u32) -> Vec<Duration> {
    let (mut busy, mut went) = (BusyFiles::default(), Vec::new());
    let mut is_waiting_until = None;
    for number in 0..changes {
        let now = pause * number;
        // The watch wakes when it is due, whether it changes then or not.
        if let Some(due) = is_waiting_until.take_if(|due| *due <= now) {
            busy.note([node(1)], due);
            went.push(due);
        }
        match busy.not_due(now).first() {
            Some((_, due)) => is_waiting_until = Some(*due),
            None => {
                busy.note([node(1)], now);
                went.push(now);
            }
        }
    }
    went
}

#[test]
fn file_that_changes_every_second_goes_every_ten_seconds_in_the_end() {
    let went = goes(SECOND, 100);
    let seconds: Vec<u64> = went.iter().map(Duration::as_secs).take(7).collect();
    assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 26]);
    assert!(went.windows(2).all(|pair| pair[1] - pair[0] <= LONGEST), "{went:?}");
    assert!(went.len() < 18, "{went:?}");
}

#[test]
fn file_that_is_saved_now_and_then_goes_at_once() {
    for pause in [SECOND * 4, SECOND * 60] {
        let went = goes(pause, 20);
        let saved: Vec<_> = (0..20).map(|number| pause * number).collect();
        assert_eq!(went, saved);
    }
}

#[test]
fn what_has_come_to_rest_is_forgotten() {
    let mut busy = BusyFiles::default();
    (0..6).for_each(|_| busy.note([node(1)], SECOND));
    assert_eq!(busy.not_due(SECOND), [(node(1), SECOND + LONGEST)]);
    let rest = SECOND + LONGEST + IN_A_ROW;
    busy.note([node(2)], rest);
    assert_eq!(busy.went.len(), 2);
    busy.note([node(2)], rest + SECOND);
    assert_eq!(busy.went.len(), 1);
    assert_eq!(busy.not_due(rest + SECOND), [(node(2), rest + SECOND * 2)]);
}

#[test]
fn what_goes_with_many_others_is_not_watched() {
    let mut busy = BusyFiles::default();
    let all: Vec<_> = (0..10_000).map(node).collect();
    (0..3).for_each(|_| busy.note(all.iter().copied(), SECOND));
    assert_eq!(busy.went.len(), FILES_MAX);
}
