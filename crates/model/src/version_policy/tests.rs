use proptest::prelude::*;

use super::*;
use crate::codec::{decode_message, encode_message};
use crate::content::ChunkRef;
use crate::ids::ChunkId;

const NOW_S: i64 = 1_800_000_000;

fn content(number: u8) -> Content {
    let chunk = ChunkRef { id: ChunkId::from_bytes([number; 32]), length: 1 };
    Content { size: 1, chunk_size: 1024, depth: 0, chunks: vec![chunk] }
}

/// A history of versions of these ages, oldest first, each with a content of its own.
fn history(ages_s: &[i64]) -> NodeHistory {
    let versions = ages_s.iter().zip(1..).map(|(age, version)| KeptVersion {
        version,
        time_s: NOW_S - age,
        content: content(version as u8),
    });
    NodeHistory { versions: versions.collect(), ..NodeHistory::default() }
}

fn without(history: &NodeHistory, dropped: &[u64]) -> NodeHistory {
    let mut rest = history.clone();
    rest.versions.retain(|version| !dropped.contains(&version.version));
    rest
}

#[test]
fn ladder_keeps_all_then_one_a_minute_an_hour_and_a_day() {
    let policy = VersionPolicy::default();
    let (day, hour) = (86_400, 3_600);
    // NOW_S is the beginning of an hour and a minute: stretches end there.
    let ages = [
        40 * day,
        2 * day + 2 * hour - 10,
        2 * day + 2 * hour - 20,
        2 * day + hour - 10,
        1_800 - 1,
        1_800 - 20,
        1_800 - 70,
        30,
        20,
        10,
    ];
    let dropped = versions_to_drop(&history(&ages), &policy, NOW_S);
    // Too old; not the last of its hour; not the last of its minute.
    assert_eq!(dropped, [1, 2, 5]);
}

#[test]
fn newest_version_stays_however_old() {
    let old = history(&[400 * 86_400, 390 * 86_400]);
    assert_eq!(versions_to_drop(&old, &VersionPolicy::default(), NOW_S), [1]);
}

#[test]
fn deleted_file_stays_for_its_time_and_then_goes_whole() {
    let policy = VersionPolicy::default();
    let mut gone = history(&[100 * 86_400, 90 * 86_400]);
    gone.deleted_s = Some(NOW_S - 30 * 86_400);
    assert_eq!(versions_to_drop(&gone, &policy, NOW_S), [1]);
    gone.deleted_s = Some(NOW_S - 30 * 86_400 - 1);
    assert_eq!(versions_to_drop(&gone, &policy, NOW_S), [1, 2]);
    gone.pinned.insert(1);
    assert_eq!(versions_to_drop(&gone, &policy, NOW_S), [2]);
}

#[test]
fn version_with_the_content_of_a_kept_one_is_kept() {
    let mut renamed = history(&[100 * 86_400, 90 * 86_400, 10]);
    renamed.versions[2].content = renamed.versions[0].content.clone();
    assert_eq!(versions_to_drop(&renamed, &VersionPolicy::default(), NOW_S), [2]);
}

#[test]
fn wrong_clocks_make_nothing_look_older() {
    // The second clock stands in 1970, the fourth in the next century.
    let clocks = [NOW_S - 500, 10, NOW_S - 100, NOW_S + 4_000_000_000, NOW_S - 50];
    let expected = [NOW_S - 500, NOW_S - 500, NOW_S - 100, NOW_S, NOW_S - 50];
    let mut steady = SteadyTime::new(NOW_S);
    assert_eq!(clocks.map(|clock| steady.next(clock)), expected);
    assert_eq!(steady.latest_s(), NOW_S - 50);
}

#[test]
fn policy_returns_from_text_and_encoding() {
    let text = "all:10m,1m:1h,1h:3d,1d:30d,deleted:30d";
    assert_eq!(text.parse(), Ok(VersionPolicy::default()));
    assert_eq!(VersionPolicy::default().to_string(), text);
    for text in ["all:forever,deleted:forever", "1d:2w,30d:forever,deleted:90s", "deleted:0s"] {
        let policy: VersionPolicy = text.parse().expect("a policy");
        assert_eq!(policy.to_string(), text);
        assert_eq!(decode_message(&encode_message(&policy)), Ok(policy));
    }
    for text in
        ["", "1h", "1h:3", "1x:3d", "1d:30d,1h:3d", "1d:3d,1h:30d", "all:-1m", "deleted:+1d"]
    {
        assert!(text.parse::<VersionPolicy>().is_err(), "{text}");
    }
}

fn policies() -> impl Strategy<Value = VersionPolicy> {
    let rungs = prop::collection::btree_map(1_u64..5_000_000, 0_u64..100_000, 0..5);
    (rungs, 0_u64..5_000_000).prop_map(|(rungs, deleted_s)| {
        let mut longest = 0;
        let rungs = rungs.into_iter().map(|(age_max_s, interval_s)| {
            longest = interval_s.max(longest);
            Rung { interval_s: longest, age_max_s }
        });
        VersionPolicy { rungs: rungs.collect(), deleted_s }
    })
}

fn histories() -> impl Strategy<Value = NodeHistory> {
    let version = (0_i64..100_000, 0_u8..6);
    (prop::collection::vec(version, 0..20), prop::option::of(0_i64..6_000_000), 0_u64..25).prop_map(
        |(steps, deleted, pinned)| {
            let mut time_s = NOW_S - 3_000_000;
            let versions = steps.into_iter().zip(1..).map(|((step, number), version)| {
                time_s = (time_s + step).min(NOW_S);
                KeptVersion { version, time_s, content: content(number) }
            });
            NodeHistory {
                versions: versions.collect(),
                deleted_s: deleted.map(|age| NOW_S - age),
                pinned: BTreeSet::from([pinned]),
            }
        },
    )
}

proptest! {
    #[test]
    fn twice_is_once(history in histories(), policy in policies()) {
        let dropped = versions_to_drop(&history, &policy, NOW_S);
        let rest = without(&history, &dropped);
        prop_assert_eq!(versions_to_drop(&rest, &policy, NOW_S), Vec::<u64>::new());
    }

    #[test]
    fn newest_and_pinned_stay(history in histories(), policy in policies()) {
        let dropped = versions_to_drop(&history, &policy, NOW_S);
        for version in &history.pinned {
            prop_assert!(!dropped.contains(version));
        }
        if let (Some(newest), None) = (history.versions.last(), history.deleted_s) {
            prop_assert!(!dropped.contains(&newest.version));
        }
        prop_assert!(dropped.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn longer_policies_drop_no_more(history in histories(), policy in policies()) {
        let all = Rung { interval_s: 0, age_max_s: FOREVER_S };
        let keeps_all = VersionPolicy { rungs: vec![all], deleted_s: FOREVER_S };
        prop_assert_eq!(versions_to_drop(&history, &keeps_all, NOW_S), Vec::<u64>::new());
        let dropped = versions_to_drop(&history, &policy, NOW_S);
        let longer = VersionPolicy { deleted_s: FOREVER_S, ..policy };
        let fewer = versions_to_drop(&history, &longer, NOW_S);
        prop_assert!(fewer.iter().all(|version| dropped.contains(version)));
    }
}
