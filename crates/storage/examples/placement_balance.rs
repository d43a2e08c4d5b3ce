//! Prints how evenly the placement fills stores of unequal capacity, and what a change of them moves, beside what
//! MetaSync (2015) printed in its Tables 5 and 6. One CSV table each.
//!
//!     cargo run --release -p storage --example placement_balance

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

use std::collections::BTreeSet;

use model::ids::StoreId;
use model::pool::{InvalidPool, PoolConfig, Redundancy, StoreRecord};
use storage::placement::Placement;

/// The stores of Table 5, with the objects that the paper counted at one and at two copies.
const TABLE_5: [(&str, u32, u64, u64); 5] = [
    ("dropbox", 2, 77, 5_297),
    ("google", 15, 660, 39_159),
    ("box", 10, 475, 25_332),
    ("onedrive", 7, 179, 18_371),
    ("baidu", 2048, 86_739, 88_101),
];

/// How many objects the paper placed.
const PAPER_OBJECTS: u64 = 88_130;

/// How many partitions the paper made: five for each unit of capacity.
const PAPER_PARTITIONS: u64 = 10_410;

/// How many objects are placed for each table.
const OBJECTS: [u64; 3] = [PAPER_OBJECTS, 1_000_000, 10_000_000];

fn main() -> Result<(), InvalidPool> {
    println!(
        "table,rule,copies,objects,store,capacity,placed,fill,deviation_percent,chance_percent"
    );
    for copies in [1, 2] {
        print_paper(copies);
        let config =
            pool(Redundancy::Replicas(copies), &TABLE_5.map(|(name, units, ..)| (name, units)))?;
        print_partitions(&config, copies);
        for objects in OBJECTS {
            let placement = Placement::new(&config);
            let counts = count(objects, config.stores.len(), |object| {
                placement.order(&object).homes().to_vec()
            });
            print_counts("syncline", copies, objects, &counts);
        }
    }
    println!();
    print_moves()
}

fn pool(redundancy: Redundancy, stores: &[(&str, u32)]) -> Result<PoolConfig, InvalidPool> {
    let record = |(number, &(name, capacity)): (u8, &(&str, u32))| {
        let id = StoreId::from_bytes([number; 16]);
        StoreRecord::new(id, name.to_owned(), format!("memory:{name}"), capacity)
    };
    PoolConfig::new(redundancy, (1..).zip(stores).map(record).collect())
}

fn object(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

fn count(objects: u64, stores: usize, homes: impl Fn([u8; 32]) -> Vec<usize>) -> Vec<u64> {
    let mut counts = vec![0; stores];
    for number in 0..objects {
        for home in homes(object(number)) {
            counts[home] += 1;
        }
    }
    counts
}

fn print_paper(copies: u8) {
    let counts = TABLE_5.map(|(_, _, one, two)| if copies == 1 { one } else { two });
    print_counts("paper", copies, PAPER_OBJECTS, &counts);
}

/// Prints one line a store. The deviation is from the mean fill: of all stores with one copy, of the four small
/// ones with two, because the large one cannot hold two copies. Chance is the standard deviation of a count that hashing alone leaves.
fn print_counts(rule: &str, copies: u8, objects: u64, counts: &[u64]) {
    let compared = if copies == 1 { TABLE_5.len() } else { TABLE_5.len() - 1 };
    let units: u32 = TABLE_5[..compared].iter().map(|(_, units, ..)| units).sum();
    let mean = counts[..compared].iter().sum::<u64>() as f64 / f64::from(units);
    for ((name, units, ..), &placed) in TABLE_5.iter().zip(counts) {
        let fill = placed as f64 / f64::from(*units);
        let deviation = (fill / mean - 1.0) * 100.0;
        let share = placed as f64 / objects as f64;
        let chance = ((1.0 - share) / placed as f64).sqrt() * 100.0;
        println!(
            "5,{rule},{copies},{objects},{name},{units},{placed},{fill:.2},{deviation:.2},{chance:.2}"
        );
    }
}

/// Places the same objects by Figure 6 of the paper as it stands, with BLAKE3 for MD5.
fn print_partitions(config: &PoolConfig, copies: u8) {
    let first = |partition: u64| {
        let mut ranks: Vec<([u8; 8], usize)> = Vec::new();
        for (place, store) in config.stores.iter().enumerate() {
            let best = (0..store.capacity).map(|node| {
                let mut text = [0; 28];
                text[..8].copy_from_slice(&partition.to_le_bytes());
                text[8..24].copy_from_slice(store.id.as_bytes());
                text[24..].copy_from_slice(&node.to_le_bytes());
                let mut rank = [0; 8];
                rank.copy_from_slice(&blake3::hash(&text).as_bytes()[..8]);
                rank
            });
            ranks.extend(best.min().map(|rank| (rank, place)));
        }
        ranks.sort_unstable();
        ranks.into_iter().take(copies.into()).map(|(_, place)| place).collect::<Vec<_>>()
    };
    let map: Vec<Vec<usize>> = (0..PAPER_PARTITIONS).map(first).collect();
    for objects in OBJECTS {
        let counts = count(objects, config.stores.len(), |object| {
            let mut word = [0; 8];
            word.copy_from_slice(&object[..8]);
            map[(u64::from_le_bytes(word) % PAPER_PARTITIONS) as usize].clone()
        });
        print_counts("figure6", copies, objects, &counts);
    }
}

/// Prints what the reconfigurations of Table 6 copy and delete, and the least that any rule must.
fn print_moves() -> Result<(), InvalidPool> {
    const OBJECTS: u64 = 100_000;
    let four = [("dropbox", 2), ("box", 10), ("google", 15), ("onedrive", 7)];
    let two_of_four = pool(Redundancy::Replicas(2), &four)?;
    let three_of_four = pool(Redundancy::Replicas(3), &four)?;
    let two_of_three = pool(Redundancy::Replicas(2), &four[..3])?;
    println!(
        "table,change,objects,copied,copied_least,deleted,deleted_least,paper_objects,paper_copied,paper_deleted"
    );
    for (change, before, after, paper) in [
        ("4 stores: 2 to 3 copies", &two_of_four, &three_of_four, "101,101,0"),
        ("2 copies: 4 to 3 stores", &two_of_four, &two_of_three, "101,54,54"),
        ("2 copies: 3 to 4 stores", &two_of_three, &two_of_four, "101,54,54"),
    ] {
        let (old, new) = (Placement::new(before), Placement::new(after));
        let (mut copied, mut deleted, mut least_in, mut least_out) = (0, 0, 0, 0);
        for number in 0..OBJECTS {
            let object = object(number);
            let homes = |config: &PoolConfig, placement: &Placement| -> BTreeSet<StoreId> {
                placement
                    .order(&object)
                    .homes()
                    .iter()
                    .map(|&home| config.stores[home].id)
                    .collect()
            };
            let (was, is) = (homes(before, &old), homes(after, &new));
            copied += is.difference(&was).count();
            deleted += was.difference(&is).count();
            // A store that goes gives all that it has, and one that comes takes its share; more copies are more copies.
            let known = |config: &PoolConfig, id: &StoreId| config.store(*id).is_some();
            let gone = was.iter().filter(|id| !known(after, id)).count();
            let come = is.iter().filter(|id| !known(before, id)).count();
            least_in += (is.len() + gone).saturating_sub(was.len()).max(come);
            least_out += (was.len() + come).saturating_sub(is.len()).max(gone);
        }
        println!("6,{change},{OBJECTS},{copied},{least_in},{deleted},{least_out},{paper}");
    }
    Ok(())
}
