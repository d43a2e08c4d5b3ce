//! Stores that are away: since when, what that means for what is new, and what to do. Told once, and again every day.

use commit_log::serverless::rounds::Quorums;
use model::{Clock, PoolConfig, Redundancy, StoreState, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attendance::{Absence, Attendance};
use crate::context::Context;
use crate::folder::{Folder, Place};
use crate::store_memory;
use crate::text::{counted, day_and_time, rfc3339};

/// After so many seconds it is told again.
const TELL_AGAIN_AFTER_S: u64 = 24 * 3600;

/// A store that is away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// Its name.
    pub(crate) name: String,
    /// When this device noticed, in seconds since 1970.
    pub(crate) since: i64,
    /// When it was told last, the same.
    #[serde(default)]
    pub(crate) told: Option<i64>,
    /// What it said last.
    pub(crate) reason: String,
    /// Whether it answers, and is not the store any more that it was.
    #[serde(default)]
    pub(crate) is_replaced: bool,
}

/// Takes note of who was away in a run. What was not asked is as it was before; `silent` are stores that were asked and said nothing.
pub(crate) fn update(away: &mut Vec<Away>, run: &Attendance, silent: &[String], now: Timestamp) {
    let mut stores = run.stores();
    for name in silent {
        let reason = "it does not answer".to_owned();
        let absence = Absence { reason, is_replaced: false };
        stores.entry(name.clone()).or_default().get_or_insert(absence);
    }
    for (name, absence) in stores {
        let known = away.iter_mut().find(|known| known.name == name);
        match (absence, known) {
            (None, _) => away.retain(|known| known.name != name),
            (Some(Absence { reason, is_replaced }), Some(known)) => {
                (known.reason, known.is_replaced) = (reason, is_replaced);
            }
            (Some(Absence { reason, is_replaced }), None) => {
                away.push(Away { name, since: now.seconds, told: None, reason, is_replaced });
            }
        }
    }
}

/// Tells which stores are away, unless that was told lately. Returns them.
pub(crate) fn tell(context: &Context<'_>, folder: &Folder) -> Vec<Away> {
    let Place::Stored(stored) = &folder.place else { return Vec::new() };
    let mut away = store_memory::away(folder);
    away.retain(|away| stored.pool.store_named(&away.name).is_some());
    let now = context.clock.now().seconds;
    let is_due = |told: i64| now.abs_diff(told) >= TELL_AGAIN_AFTER_S;
    if away.iter().all(|away| away.told.is_some_and(|told| !is_due(told))) {
        return away;
    }
    for store in &mut away {
        store.told = Some(now);
        let Away { name, since, reason, is_replaced, .. } = &*store;
        let since = day_and_time(Timestamp { seconds: *since, nanoseconds: 0 }, &context.zone);
        let help = match is_replaced {
            true => format!("`syncline backend renew {name}` lets it begin anew"),
            false => format!(
                "`syncline backend check {name}` tries it, `syncline backend rm {name} --dead` does without it"
            ),
        };
        context.ui.note(format!("'{name}' is away since {since}: {reason}; {help}"));
    }
    context.ui.note(meaning(&stored.pool, &away));
    // It is told once more, where that cannot be kept.
    let _ = store_memory::set_away(folder, &away);
    away
}

/// Says how much is kept of what is new, and how much more may fail.
fn meaning(pool: &PoolConfig, away: &[Away]) -> String {
    let is_there = |name: &str| !away.iter().any(|away| away.name == name);
    let active = pool.stores.iter().filter(|store| store.state == StoreState::Active);
    let active = active.filter(|store| is_there(&store.name)).count();
    let width = usize::from(pool.redundancy.width());
    let (kept, needed) = (width.min(active), width - usize::from(pool.redundancy.losses()));
    let quorum = Quorums::new(pool.group().count(), pool.faults).classic;
    let agree_now = pool.group().filter(|store| is_there(&store.name)).count();
    let more = kept.saturating_sub(needed).min(agree_now.saturating_sub(quorum));
    let word = match pool.redundancy {
        Redundancy::Replicas(_) => "copies",
        Redundancy::Erasure { .. } => "blocks",
    };
    let rest = match more {
        0 => "no further store may fail".to_owned(),
        more => format!("{} may fail", counted(more as u64, "more store", "more stores")),
    };
    format!("meanwhile what is new has {kept} of {width} {word}, and {rest}")
}

/// The same for programs.
pub(crate) fn away_json(away: &Away) -> Value {
    json!({
        "name": away.name,
        "since": rfc3339(Timestamp { seconds: away.since, nanoseconds: 0 }),
        "reason": away.reason,
        "is_replaced": away.is_replaced,
    })
}

#[cfg(test)]
mod tests {
    use model::pool::FaultModel;
    use model::{StoreId, StoreRecord};

    use super::*;

    fn pool(redundancy: Redundancy, stores: u8) -> PoolConfig {
        let store = |number: u8| {
            StoreRecord::new(
                StoreId::from_bytes([number; 16]),
                format!("s{number}"),
                format!("memory:{number}"),
                1,
            )
        };
        PoolConfig::new(redundancy, (1..=stores).map(store).collect()).expect("a pool")
    }

    fn away(numbers: &[u8]) -> Vec<Away> {
        let away = |number: &u8| Away {
            name: format!("s{number}"),
            since: 0,
            told: None,
            reason: String::new(),
            is_replaced: false,
        };
        numbers.iter().map(away).collect()
    }

    #[test]
    fn what_is_left_is_counted_for_data_and_order() {
        let (two, blocks) = (Redundancy::Replicas(2), Redundancy::Erasure { data: 3, total: 5 });
        let lying = pool(Redundancy::Replicas(3), 7).with_faults(FaultModel::Byzantine);
        for (pool, gone, words) in [
            (pool(two, 3), &[1][..], "2 of 2 copies, and no further store may fail"),
            (pool(two, 5), &[1], "2 of 2 copies, and 1 more store may fail"),
            (pool(two, 2), &[1], "1 of 2 copies, and no further store may fail"),
            (lying.expect("a pool"), &[1], "3 of 3 copies, and 1 more store may fail"),
            (pool(blocks, 5), &[1], "4 of 5 blocks, and 1 more store may fail"),
            (pool(blocks, 5), &[1, 2], "3 of 5 blocks, and no further store may fail"),
        ] {
            let said = meaning(&pool, &away(gone));
            assert!(said.ends_with(words), "{said}, and not {words}");
        }
    }
}
