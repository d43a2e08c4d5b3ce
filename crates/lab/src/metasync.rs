//! Tables 5 and 6 of MetaSync (2015): how evenly objects lie over stores of unequal room, and what a change of the stores moves.
//!
//! Placement is a calculation, so that it is run over as many objects as the paper had, and over more, without a store: by the rule of this
//! program, which [`crate::targets`] lends, and by the paper's own one (its Figure 6). Objects are numbered, and every run is equal.

use std::collections::BTreeSet;
use std::fmt::Write;

use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord};

use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::targets::Homes;

/// What the paper printed.
const EXPECTED: &str = include_str!("../../../experiments/metasync-table-5/expected.csv");

/// The stores of Table 5, with their room in GB. The last one is so large that with two copies it takes one of everything.
const STORES: [(&str, u32); 5] =
    [("Dropbox", 2), ("Google", 15), ("Box", 10), ("OneDrive", 7), ("Baidu", 2048)];

/// How many objects the paper placed, and how many are placed besides; the last of them in full only.
const PAPER_OBJECTS: u64 = 88_130;
const OBJECTS: [u64; 3] = [PAPER_OBJECTS, 1_000_000, 10_000_000];

/// How many partitions the paper made: five for each unit of capacity.
const PAPER_PARTITIONS: u64 = 10_410;

/// How many objects the changes of Table 6 are counted with; the paper has 101.
const MOVED_OBJECTS: u64 = 100_000;

/// What rules are called.
const PRINTED: &str = "printed";
const PARTITIONS: &str = "the paper's rule, run here";
const OURS: &str = "ours";

/// How full a store became.
struct Fill {
    rule: &'static str,
    copies: u8,
    objects: u64,
    store: &'static str,
    capacity: u32,
    placed: u64,
    /// From the mean of the stores that are compared, in percent.
    deviation: f64,
    /// The standard deviation of its count by any rule that places by a hash alone, in percent.
    chance: f64,
}

/// What a change of the stores copies and deletes, and the least that any rule must.
#[derive(Debug, PartialEq, Eq)]
struct Moves {
    change: &'static str,
    copied: u64,
    copied_least: u64,
    deleted: u64,
    deleted_least: u64,
    /// What the paper printed, of 101 objects.
    printed: &'static str,
}

/// Places, counts and writes.
///
/// # Errors
/// [`LabError::Write`].
pub fn placement(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let sizes = if setting.is_full { &OBJECTS[..] } else { &OBJECTS[..2] };
    let mut fills = Vec::new();
    for copies in [1, 2] {
        fills.extend(filled(PRINTED, copies, PAPER_OBJECTS, &printed(copies)));
        let config = pool(copies, &STORES);
        let rules = [(PARTITIONS, by_partitions(&config)), (OURS, setting.targets.homes(&config))];
        for &objects in sizes {
            for (rule, homes) in &rules {
                fills.extend(filled(rule, copies, objects, &count(objects, homes)));
            }
            say(&format!("copies of each object: {copies}; {objects} objects are placed"));
        }
    }
    let moves = moves(setting);
    output.write_csv("metasync-table-5", &csv_of_fills(&fills))?;
    output.write_csv("metasync-table-6", &csv_of_moves(&moves))?;
    output.write_page("metasync-table-5", &environment::end(page(&fills, sizes, &moves), &[]))
}

fn pool(copies: u8, stores: &[(&str, u32)]) -> PoolConfig {
    let record = |(number, &(name, capacity)): (u8, &(&str, u32))| {
        let id = StoreId::from_bytes([number; 16]);
        StoreRecord::new(id, name.to_owned(), format!("memory:{name}"), capacity)
    };
    PoolConfig::new(Redundancy::Replicas(copies), (1..).zip(stores).map(record).collect())
        .expect("the pools of the paper are in order")
}

/// Returns the hash by which an object is placed.
fn object(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

/// Counts the objects of each store.
fn count(objects: u64, homes: &Homes) -> Vec<u64> {
    let mut counts = vec![0; STORES.len()];
    for number in 0..objects {
        for home in homes(&object(number)) {
            counts[home] += 1;
        }
    }
    counts
}

/// Returns the objects of each store that the paper printed.
fn printed(copies: u8) -> Vec<u64> {
    let value = |(name, _): &(&str, u32)| {
        let line =
            EXPECTED.lines().find_map(|it| it.strip_prefix(&format!("5,R={copies},{name},")));
        line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or_default()
    };
    STORES.iter().map(value).collect()
}

/// Compares the fill of stores with its mean: of all with one copy, of all but the largest one with two, of which that one cannot hold both.
fn filled(
    rule: &'static str,
    copies: u8,
    objects: u64,
    counts: &[u64],
) -> impl Iterator<Item = Fill> {
    let compared = compared(copies);
    let units: u32 = STORES[..compared].iter().map(|(_, units)| units).sum();
    let mean = counts[..compared].iter().sum::<u64>() as f64 / f64::from(units);
    STORES[..compared].iter().zip(counts).map(move |(&(store, capacity), &placed)| {
        let expected = mean * f64::from(capacity);
        Fill {
            rule,
            copies,
            objects,
            store,
            capacity,
            placed,
            deviation: (placed as f64 / expected - 1.0) * 100.0,
            chance: ((1.0 - expected / objects as f64) / expected).sqrt() * 100.0,
        }
    })
}

/// Returns how many of the stores can be compared.
fn compared(copies: u8) -> usize {
    if copies == 1 { STORES.len() } else { STORES.len() - 1 }
}

/// Places by Figure 6 of the paper as it stands, with BLAKE3 for MD5: each partition has its own order of the virtual nodes, of which a store has one for each unit of capacity.
fn by_partitions(config: &PoolConfig) -> Homes {
    let copies = usize::from(config.redundancy.width());
    let rank = |partition: u64, store: &StoreRecord, node: u32| {
        let mut text = [0; 28];
        text[..8].copy_from_slice(&partition.to_le_bytes());
        text[8..24].copy_from_slice(store.id.as_bytes());
        text[24..].copy_from_slice(&node.to_le_bytes());
        *blake3::hash(&text).as_bytes()
    };
    let order = |partition: u64| -> Vec<usize> {
        let stores = config.stores.iter().enumerate();
        let best = |(place, store): (usize, &StoreRecord)| {
            let first = (0..store.capacity).map(|node| rank(partition, store, node)).min()?;
            Some((first, place))
        };
        let mut ranks: Vec<_> = stores.filter_map(best).collect();
        ranks.sort_unstable();
        ranks.into_iter().take(copies).map(|(_, place)| place).collect()
    };
    let map: Vec<Vec<usize>> = (0..PAPER_PARTITIONS).map(order).collect();
    Box::new(move |object| {
        let mut word = [0; 8];
        word.copy_from_slice(&object[..8]);
        map[(u64::from_le_bytes(word) % PAPER_PARTITIONS) as usize].clone()
    })
}

/// Counts what the changes of Table 6 copy and delete by our rule.
fn moves(setting: &Setting) -> Vec<Moves> {
    let four = &STORES[..4];
    let (two_of_four, three_of_four, two_of_three) =
        (pool(2, four), pool(3, four), pool(2, &four[..3]));
    let changes = [
        ("4 stores: 2 to 3 copies", &two_of_four, &three_of_four, "101 / 0"),
        ("2 copies: 4 to 3 stores", &two_of_four, &two_of_three, "54 / 54"),
        ("2 copies: 3 to 4 stores", &two_of_three, &two_of_four, "54 / 54"),
    ];
    changes
        .map(|(change, before, after, printed)| {
            let rules = [before, after].map(|config| setting.targets.homes(config));
            let mut moves =
                Moves { change, copied: 0, copied_least: 0, deleted: 0, deleted_least: 0, printed };
            for number in 0..MOVED_OBJECTS {
                let homes = |config: &PoolConfig, homes: &Homes| -> BTreeSet<StoreId> {
                    homes(&object(number)).iter().map(|&home| config.stores[home].id).collect()
                };
                let (was, is) = (homes(before, &rules[0]), homes(after, &rules[1]));
                moves.copied += is.difference(&was).count() as u64;
                moves.deleted += was.difference(&is).count() as u64;
                // A store that goes gives all that it has, and one that comes takes its share; more copies are more copies.
                let gone = was.iter().filter(|id| after.store(**id).is_none()).count();
                let come = is.iter().filter(|id| before.store(**id).is_none()).count();
                moves.copied_least += (is.len() + gone).saturating_sub(was.len()).max(come) as u64;
                moves.deleted_least += (was.len() + come).saturating_sub(is.len()).max(gone) as u64;
            }
            moves
        })
        .into()
}

fn csv_of_fills(fills: &[Fill]) -> String {
    let mut text = String::from(
        "rule,copies,objects,store,capacity,placed,deviation_percent,chance_percent\n",
    );
    for Fill { rule, copies, objects, store, capacity, placed, deviation, chance } in fills {
        // Writing to a String cannot fail, here as below.
        let _ok = writeln!(
            text,
            "\"{rule}\",{copies},{objects},{store},{capacity},{placed},{deviation:.2},{chance:.2}"
        );
    }
    text
}

fn csv_of_moves(moves: &[Moves]) -> String {
    let mut text =
        String::from("change,objects,copied,copied_least,deleted,deleted_least,printed_of_101\n");
    for Moves { change, copied, copied_least, deleted, deleted_least, printed } in moves {
        let _ok = writeln!(
            text,
            "{change},{MOVED_OBJECTS},{copied},{copied_least},{deleted},{deleted_least},{printed}"
        );
    }
    text
}

/// Finds how full a store is by a rule.
fn found<'a>(
    fills: &'a [Fill],
    rule: &str,
    (copies, objects): (u8, u64),
    store: &str,
) -> Option<&'a Fill> {
    fills.iter().find(|fill| {
        (fill.rule, fill.copies, fill.objects, fill.store) == (rule, copies, objects, store)
    })
}

fn page(fills: &[Fill], sizes: &[u64], moves: &[Moves]) -> Page {
    let mut page = Page::new("How evenly objects lie, and what a change moves: MetaSync's tables 5 and 6")
        .text("How far the fill of each store is from the mean of those that are compared: of all with one copy, of the four small ones with two, of which the large one cannot hold both. Chance is the standard deviation that hashing leaves to any rule that does not look at what is stored.");
    for copies in [1, 2] {
        page = page
            .table(&headings(sizes), rows(fills, copies, sizes))
            .drawing(format!("table-5-{copies}"), drawing(fills, copies));
    }
    let row = |moves: &Moves| {
        let Moves { change, copied, copied_least, deleted, deleted_least, printed } = moves;
        let counts = [copied, copied_least, deleted, deleted_least].map(u64::to_string);
        [(*change).to_owned()].into_iter().chain(counts).chain([(*printed).to_owned()]).collect()
    };
    page.text(format!("What a change of the stores copies and deletes by our rule, of {MOVED_OBJECTS} objects, beside the least that any rule must: what a store that comes or goes takes or gives, and a copy for each further copy."))
        .table(
            &["change", "copied", "least", "deleted", "least", "printed, of 101"],
            moves.iter().map(row).collect(),
        )
}

fn headings(sizes: &[u64]) -> Vec<&'static str> {
    let more = ["ours, 1,000,000", "ours, 10,000,000"];
    let fixed = ["% from the mean", "printed, 88,130 objects", PARTITIONS, "ours", "chance alone"];
    fixed.into_iter().chain(more.into_iter().take(sizes.len() - 1)).collect()
}

fn rows(fills: &[Fill], copies: u8, sizes: &[u64]) -> Vec<Vec<String>> {
    let row = |(store, capacity): &(&str, u32)| {
        let cell = |rule, objects, value: fn(&Fill) -> f64| {
            let fill = found(fills, rule, (copies, objects), store);
            fill.map_or_else(String::new, |fill| format!("{:.1}", value(fill)))
        };
        let mut row = vec![format!("{store} ({capacity} GB), copies: {copies}")];
        row.extend(
            [PRINTED, PARTITIONS, OURS].map(|it| cell(it, PAPER_OBJECTS, |it| it.deviation)),
        );
        row.push(cell(OURS, PAPER_OBJECTS, |it| it.chance));
        row.extend(sizes[1..].iter().map(|&objects| cell(OURS, objects, |it| it.deviation)));
        row
    };
    STORES[..compared(copies)].iter().map(row).collect()
}

/// Draws the four small stores; the large one is never far from the mean, which is mostly its own.
fn drawing(fills: &[Fill], copies: u8) -> String {
    let small = &STORES[..4];
    let points = |rule, value: fn(&Fill) -> f64| -> Vec<(f64, f64)> {
        let at = |(place, (store, _)): (u32, &(&str, u32))| {
            let fill = found(fills, rule, (copies, PAPER_OBJECTS), store)?;
            Some((f64::from(place), value(fill).abs()))
        };
        (0..).zip(small).filter_map(at).collect()
    };
    let of = if copies == 1 { "one copy" } else { "two copies" };
    let plot = Plot {
        title: format!(
            "Table 5, {of} of {PAPER_OBJECTS} objects: how far a store is from its share"
        ),
        across: "store".to_owned(),
        up: "% too full or too empty".to_owned(),
        series: vec![
            Series::published(PRINTED, points(PRINTED, |fill| fill.deviation)),
            Series::ours(PARTITIONS, points(PARTITIONS, |fill| fill.deviation)),
            Series::ours(OURS, points(OURS, |fill| fill.deviation)),
            Series::ours("chance alone", points(OURS, |fill| fill.chance)),
        ],
    };
    plot.bars(&small.iter().map(|(store, _)| (*store).to_owned()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::targets::testing::setting;

    #[test]
    fn the_papers_counts_are_read_and_compared_with_their_mean() {
        assert_eq!(printed(1), [77, 660, 475, 179, 86_739]);
        let two: Vec<Fill> = filled(PRINTED, 2, PAPER_OBJECTS, &printed(2)).collect();
        let deviations: Vec<String> = two.iter().map(|it| format!("{:.1}", it.deviation)).collect();
        assert_eq!(deviations, ["2.1", "0.7", "-2.3", "1.2"]);
        let of_chance = found(&two, PRINTED, (2, PAPER_OBJECTS), "Dropbox").unwrap().chance;
        assert!((1.3..1.4).contains(&of_chance), "{of_chance}");
    }

    #[test]
    fn the_papers_rule_gives_each_store_its_part_of_the_partitions() {
        let small = &STORES[..4];
        let counts = count(34_000, &by_partitions(&pool(1, small)));
        assert_eq!(counts.iter().sum::<u64>(), 34_000);
        // One of 34 units is 1,000 objects and 306 partitions.
        for (count, (store, units)) in counts.iter().zip(small) {
            let part = *count as f64 / f64::from(*units);
            assert!((850.0..1150.0).contains(&part), "{store}: {counts:?}");
        }
        let twice = by_partitions(&pool(2, small))(&object(7));
        assert!(twice.len() == 2 && twice[0] != twice[1], "{twice:?}");
    }

    #[test]
    fn tables_and_drawings_have_what_is_printed_beside_ours() {
        let counts = printed(2);
        let fills: Vec<Fill> = [PRINTED, PARTITIONS, OURS]
            .into_iter()
            .flat_map(|rule| filled(rule, 2, PAPER_OBJECTS, &counts))
            .collect();
        let rows = rows(&fills, 2, &OBJECTS[..2]);
        assert_eq!(rows[0][..4], ["Dropbox (2 GB), copies: 2", "2.1", "2.1", "2.1"]);
        assert!(rows.len() == 4 && rows[0].len() == headings(&OBJECTS[..2]).len());
        assert_eq!(rows[0][5], "", "nothing of a million objects is known here");
        assert_eq!(drawing(&fills, 2).matches("<rect").count(), 1 + 4 * (4 + 1));
        assert_eq!(csv_of_fills(&fills).lines().count(), 1 + 3 * 4);
    }

    #[test]
    fn what_a_change_moves_is_counted_beside_the_least() {
        // These always take the first stores, so that a copy more is one copy, and a store that goes had nothing.
        let moves = moves(&setting(Path::new("unused"), None));
        let counts = |at: usize| {
            let Moves { copied, copied_least, deleted, deleted_least, .. } = moves[at];
            [copied, copied_least, deleted, deleted_least]
        };
        assert_eq!(counts(0), [MOVED_OBJECTS, MOVED_OBJECTS, 0, 0]);
        assert_eq!([counts(1), counts(2)], [[0; 4]; 2]);
        let line = "2 copies: 4 to 3 stores,100000,0,0,0,0,54 / 54\n";
        assert!(csv_of_moves(&moves).contains(line));
    }
}
