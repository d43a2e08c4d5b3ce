use content::NewWorkspace;
use model::Timestamp;

use super::*;
use crate::system::SystemRandom;

/// Three stores, and locked keys of the generations 1 and 2 and another one that claims to be the third.
struct Room {
    stores: Stores,
    keys: [KeyObject; 3],
}

impl Room {
    fn new(name: &str) -> Self {
        let open = |number: usize| storage::open(&format!("memory:{name}/{number}")).unwrap();
        let passphrase = Passphrase::new(Zeroizing::new("correct horse".to_owned()));
        let created = Timestamp::default();
        let NewWorkspace { genesis, keys: one, unlocked } =
            NewWorkspace::create("letters", created, &passphrase, &SystemRandom).unwrap();
        let next = |keys: &KeyObject| keys.next(&genesis, &unlocked, None, &SystemRandom).unwrap();
        let two = next(&one);
        let invented = next(&next(&one));
        Self { stores: (0..3).map(open).collect(), keys: [one, two, invented] }
    }

    fn put(&self, store: usize, keys: &KeyObject) {
        let (key, bytes) = (ObjectKey::keys(keys.generation()), keys.to_bytes().into());
        run(self.stores[store].put(&key, bytes, PutMode::Overwrite)).unwrap();
    }

    /// The generations of which a store has keys.
    fn generations(&self, store: usize) -> Vec<u64> {
        let listed = run(list_all(&*self.stores[store], ObjectKey::KEYS)).unwrap();
        let known = (1..=3)
            .filter(|number| listed.iter().any(|entry| entry.key == ObjectKey::keys(*number)));
        known.collect()
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn keys_that_one_store_invents_displace_no_others() {
    let room = Room::new("invented");
    let [_, two, invented] = &room.keys;
    for store in [0, 2] {
        room.put(store, two);
    }
    room.put(1, two);
    room.put(1, invented);
    assert_eq!(run(newest_keys(&room.stores)).unwrap(), *two);
    assert_eq!(run(catch_up(&room.stores)).unwrap(), 0);
    for store in [0, 2] {
        assert_eq!(room.generations(store), [2], "they are as they were");
    }
    assert!(room.generations(1).contains(&2));
}

#[test]
fn older_keys_stay_where_too_few_stores_have_the_newer_ones() {
    let room = Room::new("few");
    let [one, two, invented] = &room.keys;
    for (store, keys) in [one, two, invented].into_iter().enumerate() {
        room.put(store, keys);
    }
    assert_eq!(run(catch_up(&room.stores)).unwrap(), 2);
    assert_eq!([0, 1, 2].map(|store| room.generations(store)), [[1], [2], [3]]);
}

#[test]
fn store_that_has_missed_a_change_or_damaged_its_keys_gets_those_of_the_others() {
    let room = Room::new("missed");
    let [one, two, _] = &room.keys;
    room.put(0, one);
    for store in [1, 2] {
        room.put(store, two);
    }
    assert_eq!(run(catch_up(&room.stores)).unwrap(), 0);
    assert_eq!([0, 1, 2].map(|store| room.generations(store)), [[2]; 3]);
    let mut damaged = two.to_bytes();
    *damaged.last_mut().unwrap() ^= 1;
    let key = ObjectKey::keys(2);
    run(room.stores[1].put(&key, damaged.into(), PutMode::Overwrite)).unwrap();
    assert_eq!(run(catch_up(&room.stores)).unwrap(), 0);
    let healed = run(room.stores[1].get(&key)).unwrap().unwrap();
    assert!(healed == two.to_bytes());
}
