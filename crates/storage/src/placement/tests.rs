use std::collections::BTreeSet;

use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord, StoreState};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof};
use proptest::{prop_assume, proptest};

use super::{Placement, StoreOrder, negative_log2};

fn store(number: u8, capacity: u32) -> StoreRecord {
    let id = StoreId::from_bytes([number; 16]);
    StoreRecord::new(id, format!("store{number}"), format!("memory:{number}"), capacity)
}

fn pool(redundancy: Redundancy, capacities: &[u32]) -> PoolConfig {
    let stores = (1..).zip(capacities).map(|(number, &capacity)| store(number, capacity));
    PoolConfig::new(redundancy, stores.collect()).expect("a pool")
}

fn object(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

/// The ids of the homes of an object.
fn homes(config: &PoolConfig, order: &StoreOrder) -> BTreeSet<StoreId> {
    order.homes().iter().map(|&home| config.stores[home].id).collect()
}

/// How many copies each store gains and loses when one configuration follows another.
fn moves(before: &PoolConfig, after: &PoolConfig, objects: u64) -> Vec<(StoreId, u64, u64)> {
    let (old, new) = (Placement::new(before), Placement::new(after));
    let ids: BTreeSet<StoreId> =
        before.stores.iter().chain(&after.stores).map(|store| store.id).collect();
    let mut moves: Vec<_> = ids.into_iter().map(|id| (id, 0, 0)).collect();
    for number in 0..objects {
        let object = object(number);
        let (was, is) = (homes(before, &old.order(&object)), homes(after, &new.order(&object)));
        for (id, gained, lost) in &mut moves {
            *gained += u64::from(is.contains(id) && !was.contains(id));
            *lost += u64::from(was.contains(id) && !is.contains(id));
        }
    }
    moves
}

#[test]
fn negative_log2_is_exact_at_powers_and_close_between() {
    for power in 0..64 {
        assert_eq!(negative_log2(1 << power), (64 - power) << 48);
    }
    assert_eq!(negative_log2(0), 64 << 48);
    assert_eq!(negative_log2(u64::MAX), 1, "never 0, so that no capacity is without effect");
    for number in 0..10_000u64 {
        let bytes = object(number)[..8].try_into().expect("eight bytes");
        let word = u64::from_le_bytes(bytes);
        let exact = 64.0 - (word as f64).log2();
        let found = negative_log2(word) as f64 / (1u64 << 48) as f64;
        assert!((found - exact).abs() < 1e-12, "{word}: {found}, not {exact}");
    }
}

/// The vectors of `docs/design/placement.md`; a change here moves the data of every pool there is.
#[test]
fn placement_is_what_the_specification_says() {
    assert_eq!(negative_log2(0xc000_0000_0000_0000), 116_822_670_443_562);
    let config = pool(Redundancy::Replicas(2), &[2, 15, 10, 7, 2048]);
    let placement = Placement::new(&config);
    let found = [0u8, 1, 2, 3, 255].map(|byte| placement.order(&[byte; 32]).all().to_vec());
    let expected =
        [[4, 1, 3, 0, 2], [4, 1, 3, 2, 0], [4, 3, 0, 2, 1], [4, 3, 0, 1, 2], [4, 2, 1, 3, 0]];
    assert_eq!(found, expected);
    let blocks = pool(Redundancy::Erasure { data: 3, total: 5 }, &[1; 6]);
    let order = Placement::new(&blocks).order(&[0; 32]);
    assert_eq!(order.all(), [0, 1, 5, 3, 2, 4]);
    let indexes: Vec<_> = order.homes().iter().map(|&home| order.index_of(home)).collect();
    assert_eq!(indexes, [2, 1, 3, 4, 0].map(Some));
}

#[test]
fn shares_follow_capacity() {
    let config = pool(Redundancy::Replicas(1), &[1, 2, 3, 4]);
    let placement = Placement::new(&config);
    let mut counts = [0u32; 4];
    for number in 0..100_000 {
        counts[placement.order(&object(number)).homes()[0]] += 1;
    }
    for (count, capacity) in counts.into_iter().zip(1..) {
        let expected = f64::from(capacity) * 10_000.0;
        // Four standard deviations of the number of objects.
        assert!((f64::from(count) - expected).abs() < 4.0 * expected.sqrt(), "{counts:?}");
    }
}

#[test]
fn a_store_that_comes_only_takes_and_one_that_goes_only_gives() {
    let four = pool(Redundancy::Replicas(2), &[5, 5, 10, 20]);
    let mut three = four.clone();
    let gone = three.stores.remove(1).id;
    for (id, gained, lost) in moves(&four, &three, 20_000) {
        assert!(if id == gone { gained == 0 && lost > 0 } else { lost == 0 }, "{id}");
    }
    for (id, gained, lost) in moves(&three, &four, 20_000) {
        assert!(if id == gone { lost == 0 && gained > 0 } else { gained == 0 }, "{id}");
    }
    // To drain a store is to remove it, as far as the others can tell.
    let mut draining = four.clone();
    draining.stores[1].state = StoreState::Draining;
    assert!(moves(&draining, &three, 20_000).iter().all(|(_, gained, lost)| gained + lost == 0));
}

#[test]
fn an_order_of_a_thousand_objects_takes_no_time() {
    let config = pool(Redundancy::Replicas(2), &[2, 15, 10, 7, 2048]);
    let placement = Placement::new(&config);
    let distinct: BTreeSet<_> =
        (0..1000).map(|number| placement.order(&object(number)).all().to_vec()).collect();
    assert!(distinct.len() > 10);
}

fn redundancies() -> impl Strategy<Value = Redundancy> {
    prop_oneof![
        (1u8..=4).prop_map(Redundancy::Replicas),
        (1u8..4, 1u8..4).prop_map(|(data, more)| Redundancy::Erasure { data, total: data + more }),
        Just(Redundancy::Erasure { data: 3, total: 5 }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_change_of_one_store_moves_nothing_between_others(
        redundancy in redundancies(),
        capacities in vec(1u32..3000, 2..9),
        changed in 0usize..9,
        capacity in 1u32..3000,
        does_drain in proptest::bool::ANY,
    ) {
        prop_assume!(capacities.len() > usize::from(redundancy.width()));
        let before = pool(redundancy, &capacities);
        let mut after = before.clone();
        let store = &mut after.stores[changed % capacities.len()];
        let (id, grows) = (store.id, !does_drain && capacity >= store.capacity);
        if does_drain {
            store.state = StoreState::Draining;
        } else {
            store.capacity = capacity;
        }
        let mut total = (0, 0);
        let found = moves(&before, &after, 200);
        for (other, gained, lost) in &found {
            total = (total.0 + gained, total.1 + lost);
            if *other == id {
                prop_assert_eq!(if grows { *lost } else { *gained }, 0);
            } else {
                prop_assert_eq!(if grows { *gained } else { *lost }, 0);
            }
        }
        // The lower bound: what the changed store must gain or lose, and nothing else, is moved once.
        let own = found.iter().find(|(other, ..)| *other == id).expect("the store");
        prop_assert_eq!(total.0, own.1.max(own.2));
        prop_assert_eq!(total.1, own.1.max(own.2));
    }

    #[test]
    fn more_copies_leave_those_that_are_there(
        capacities in vec(1u32..3000, 3..9),
        copies in 1u8..3,
    ) {
        let before = pool(Redundancy::Replicas(copies), &capacities);
        let after = pool(Redundancy::Replicas(copies + 1), &capacities);
        let found = moves(&before, &after, 200);
        prop_assert!(found.iter().all(|(_, _, lost)| *lost == 0));
        prop_assert_eq!(found.iter().map(|(_, gained, _)| gained).sum::<u64>(), 200);
    }

    #[test]
    fn every_home_is_active_and_holds_a_block_of_its_own(
        redundancy in redundancies(),
        capacities in vec(1u32..3000, 1..12),
        draining in vec(proptest::bool::ANY, 12),
        number in 0u64..u64::MAX,
    ) {
        let mut config = pool(Redundancy::Replicas(1), &capacities);
        config.redundancy = redundancy;
        for (store, drains) in config.stores.iter_mut().zip(draining) {
            store.state = if drains { StoreState::Draining } else { StoreState::Active };
        }
        let order = Placement::new(&config).order(&object(number));
        let all: BTreeSet<_> = order.all().iter().collect();
        prop_assert_eq!(all.len(), config.stores.len());
        let active = config.active().count();
        prop_assert_eq!(order.homes().len(), active.min(redundancy.width().into()));
        prop_assert_eq!(order.homes().len() + order.substitutes().len(), active);
        let indexes: BTreeSet<_> =
            order.homes().iter().filter_map(|&home| order.index_of(home)).collect();
        if matches!(redundancy, Redundancy::Erasure { .. }) {
            prop_assert_eq!(indexes.len(), order.homes().len());
            prop_assert!(indexes.iter().all(|index| *index < redundancy.width()));
        }
    }
}
