//! Random calls against a map that does the same in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use storage::{ObjectStore, PutMode, PutOutcome};

use crate::support::{file_store, key, memory};

/// None is a folder of another.
const KEYS: [&str; 10] =
    ["a-b", "a.c", "a/b-c", "a/b/c", "a/b/d", "a/b.x", "a0", "ab/c", "packs/aa/1", "packs/ab/2"];
const PREFIXES: [&str; 12] =
    ["", "a", "a/", "a/b", "a/b/", "a/b/c", "ab", "p", "packs/", "packs/a", "packs/ab/", "z"];

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u16, bool),
    Delete(usize),
    Get(usize, u64, u64),
    List(usize, Option<usize>, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..KEYS.len();
    prop_oneof![
        (object.clone(), any::<u16>(), any::<bool>()).prop_map(|(k, n, m)| Step::Put(k, n, m)),
        object.clone().prop_map(Step::Delete),
        (object.clone(), 0..70_000u64, 0..70_000u64).prop_map(|(k, a, b)| Step::Get(k, a, b)),
        (0..PREFIXES.len(), prop_oneof![Just(None), object.prop_map(Some)], 0..12usize)
            .prop_map(|(p, after, limit)| Step::List(p, after, limit)),
    ]
}

fn check(store: &Arc<dyn ObjectStore>, steps: &[Step]) {
    let mut model: BTreeMap<&str, Bytes> = BTreeMap::new();
    for step in steps {
        apply(store, &mut model, step).now_or_never().expect("no runtime");
    }
}

async fn apply(store: &Arc<dyn ObjectStore>, model: &mut BTreeMap<&str, Bytes>, step: &Step) {
    match *step {
        Step::Put(index, length, overwrite) => {
            let bytes = Bytes::from(vec![length as u8; usize::from(length)]);
            let mode = if overwrite { PutMode::Overwrite } else { PutMode::IfAbsent };
            let outcome = store.put(&key(KEYS[index]), bytes.clone(), mode).await.unwrap();
            if !overwrite && model.contains_key(KEYS[index]) {
                assert_eq!(outcome, PutOutcome::Exists);
            } else {
                assert_eq!(outcome, PutOutcome::Written);
                model.insert(KEYS[index], bytes);
            }
        }
        Step::Delete(index) => {
            store.delete(&key(KEYS[index])).await.unwrap();
            model.remove(KEYS[index]);
        }
        Step::Get(index, start, end) => {
            let expected = model.get(KEYS[index]);
            let key = key(KEYS[index]);
            assert_eq!(store.get(&key).await.unwrap().as_ref(), expected);
            let part = expected.map(|bytes| {
                let end = (end as usize).min(bytes.len());
                bytes.slice((start as usize).min(end)..end)
            });
            assert_eq!(store.get_range(&key, start..end).await.unwrap(), part);
            let size = expected.map(|bytes| bytes.len() as u64);
            assert_eq!(store.size(&key).await.unwrap(), size);
        }
        Step::List(prefix, after, limit) => {
            let (prefix, after) = (PREFIXES[prefix], after.map(|index| KEYS[index]));
            let found = store.list(prefix, after, limit).await.unwrap();
            let found: Vec<_> = found.iter().map(|e| (e.key.as_str(), e.size)).collect();
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| {
                    key.starts_with(prefix) && after.is_none_or(|after| **key > after)
                })
                .take(limit)
                .map(|(key, bytes)| (*key, bytes.len() as u64))
                .collect();
            assert_eq!(found, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_and_memory_stores_do_what_a_map_does(steps in proptest::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        check(&file_store(folder.path()), &steps);
        check(&memory(), &steps);
    }
}
