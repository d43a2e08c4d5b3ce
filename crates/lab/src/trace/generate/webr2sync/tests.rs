use super::super::tests::parsed;
use super::*;

/// Where, how large, how many: of each edit its path and sub-edits.
fn edited(workload: &WebR2sync) -> Vec<(String, Vec<Edit>)> {
    let edit = |step: super::super::super::Step| match step.action {
        Action::Edit { path, edits } => Some((path, edits)),
        _ => None,
    };
    parsed(workload).into_iter().filter_map(edit).collect()
}

#[test]
fn a_file_of_the_simple_workload_is_edited_once_and_each_operation_and_size_is_as_frequent() {
    let edits = edited(&WebR2sync::default());
    let mut paths: Vec<_> = edits.iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!((edits.len(), paths.len()), (180, 180));
    for operation in ["append", "insert", "cut"] {
        for bytes in [1, 10, 100, 1024, 10_240, 102_400] {
            let prefix = format!("{operation}-{bytes}-");
            let those: Vec<_> =
                edits.iter().filter(|(path, _)| path.starts_with(&prefix)).collect();
            assert_eq!(those.len(), 10, "{prefix}");
            for (_, edits) in those {
                assert_eq!(edits.iter().map(|edit| edit.size).sum::<u64>(), bytes, "{prefix}");
                let kind = if operation == "cut" { EditKind::Cut } else { EditKind::Insert };
                assert!(edits.iter().all(|edit| edit.kind == kind && edit.size > 0));
                let is_at_end = edits.iter().all(|edit| edit.place == Place::End);
                assert_eq!(is_at_end, operation == "append");
                let is_dispersed = operation != "append" && bytes >= 1024;
                assert!(edits.len() == 1 || (is_dispersed && edits.len() <= 20), "{edits:?}");
            }
        }
    }
}

#[test]
fn files_have_a_mebibyte_on_average() {
    let sizes: Vec<u64> = parsed(&WebR2sync { files: 5000, rounds: 0, ..WebR2sync::default() })
        .iter()
        .filter_map(|step| match step.action {
            Action::Write { size, .. } => Some(size),
            _ => None,
        })
        .collect();
    let mean = sizes.iter().sum::<u64>() / 5000;
    assert!(mean.abs_diff(1 << 20) < 20_000, "{mean}");
    assert!(sizes.iter().all(|size| (512 << 10..=1536 << 10).contains(size)));
}

#[test]
fn edits_are_dispersed_as_in_figure_13() {
    let mut random = Random::new(13);
    let counts: Vec<usize> = (0..20_000)
        .map(|_| edits(&mut random, Operation::Insert, 10_240, 1_000_000).len())
        .collect();
    for (counted, percent) in [(1..=5, 46), (6..=10, 35), (11..=16, 14), (17..=20, 5)] {
        let found = counts.iter().filter(|count| counted.contains(*count)).count();
        assert!(found.abs_diff(percent * 200) < 250, "{counted:?}: {found}");
    }
}

#[test]
fn sub_edits_do_not_touch_each_other_and_lie_anywhere() {
    let mut random = Random::new(14);
    let (mut first, mut second) = (0_u64, 0_u64);
    for _ in 0..3000 {
        // A file of its own places: what is cut is what was there before.
        let file_size = 300_000;
        let cuts = edits(&mut random, Operation::Cut, 102_400, file_size);
        let mut left: u64 = file_size;
        let mut end = 0;
        for cut in &cuts {
            let offset = cut.offset.unwrap();
            assert!(offset >= end && offset + cut.size <= left, "{cuts:?}");
            (left, end) = (left - cut.size, offset);
        }
        assert_eq!(left, file_size - 102_400);
        let inserts = edits(&mut random, Operation::Insert, 1024, file_size);
        let mut inserted = 0;
        for insert in &inserts {
            let place = insert.offset.unwrap() - inserted;
            *if place < file_size / 2 { &mut first } else { &mut second } += 1;
            inserted += insert.size;
        }
    }
    let total = first + second;
    assert!(first.abs_diff(second) * 20 < total, "{first} {second}");
}

#[test]
fn a_file_is_edited_every_10_seconds_and_stays_a_typical_one() {
    let workload = WebR2sync { files: 18, rounds: 60, ..WebR2sync::default() };
    let steps = parsed(&workload);
    let times = |file: &str| -> Vec<u64> {
        let is_edit =
            |action: &Action| matches!(action, Action::Edit { path, .. } if path.starts_with(file));
        steps.iter().filter(|step| is_edit(&step.action)).filter_map(|step| step.at_ms).collect()
    };
    let times = times("insert-102400-");
    assert_eq!(times.len(), 60);
    assert!(times.windows(2).all(|two| two[1] - two[0] == 10_000), "{times:?}");
    let written_again = steps
        .iter()
        .filter(|step| step.at_ms.is_some() && matches!(step.action, Action::Write { .. }));
    // 100 KB sixty times are several files of a MB; 10 KB sixty times are at most one.
    let written_again = written_again.count();
    assert!((10..60).contains(&written_again), "{written_again}");
}
