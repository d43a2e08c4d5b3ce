//! `syncline backend rebalance`: what homes lack is written, and then what is stored twice is removed.
//!
//! Why that is safe, though other devices may follow other settings: `docs/design/placement.md`, "Rules for removing a piece".

use std::cell::Cell;

use serde_json::json;
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, Inventory, RepairOutcome, UnseenStore};
use sync::Engine;
use sync::engine::TurnGuard;

use crate::connect::{SessionOptions, open_data, with_engine};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::folder::{Folder, StoredPlace};
use crate::text::counted;
use crate::ui::Symbol;

/// How many objects that could not be moved are named.
const FAILURES_SHOWN: usize = 10;

/// The exit code of something that is partly so.
const PARTLY: u8 = 3;

/// What a rebalance has come to.
#[derive(Debug, Default)]
pub(crate) struct Rebalanced {
    outcome: RepairOutcome,
    unseen: Vec<UnseenStore>,
}

impl Rebalanced {
    /// Returns how many pieces were removed.
    pub(crate) fn removed(&self) -> u64 {
        self.outcome.removed
    }
}

/// Runs the command.
///
/// # Errors
/// [`crate::error::Code::NotOurTurn`]; those of the log.
pub(crate) fn run(
    context: &Context<'_>,
    folder: &Folder,
    stored: &StoredPlace,
    takes_over: bool,
) -> Result<u8> {
    let done = rebalance(context, folder, stored, takes_over)?;
    let (outcome, unseen) = (&done.outcome, &done.unseen);
    context.ui.json(&json!({
        "schema": "syncline.rebalance/1",
        "type": "summary",
        "written": outcome.written,
        "removed": outcome.removed,
        "bytes": outcome.bytes,
        "failed": outcome.failed.len(),
        "unseen_stores": unseen.iter().map(|unseen| &unseen.name).collect::<Vec<_>>(),
    }));
    for unseen in unseen {
        context.ui.note(format!("'{}' does not answer: {}", unseen.name, unseen.reason));
    }
    for (object, reason) in outcome.failed.iter().take(FAILURES_SHOWN) {
        context.ui.note(format!("{object}: {reason}"));
    }
    let pieces = |count| counted(count, "piece", "pieces");
    context.ui.say(Symbol::Done, format!("wrote {} where they belong", pieces(outcome.written)));
    if outcome.removed > 0 {
        let removed = format!("removed {} that were stored twice", pieces(outcome.removed));
        context.ui.say(Symbol::Done, removed);
    }
    Ok(if outcome.failed.is_empty() && unseen.is_empty() { 0 } else { PARTLY })
}

/// Brings everything home, and removes what is stored twice, unless a store is away.
///
/// # Errors
/// As [`run`].
pub(crate) fn rebalance(
    context: &Context<'_>,
    folder: &Folder,
    stored: &StoredPlace,
    takes_over: bool,
) -> Result<Rebalanced> {
    let options = SessionOptions::CHANGE_BESIDE_WATCH;
    // Over all attempts: what is done anew because others have changed the stores finds written what an earlier one wrote.
    let written = Cell::new(0);
    let done = with_engine(context, folder, options, None, async |engine| {
        let pool = open_data(context, folder, stored);
        let inventory = pool.inventory().await;
        let unseen: Vec<UnseenStore> = inventory.unseen().cloned().collect();
        let plan = pool.plan_rebalance(&inventory).without_removals();
        let mut outcome = pool.carry_out(&plan, CarryOut::default()).await;
        written.set(written.get() + outcome.written);
        if unseen.is_empty() && outcome.failed.is_empty() {
            let removed = remove_surplus(engine, &pool, stored.version, takes_over).await?;
            outcome.removed = removed.removed;
            outcome.bytes += removed.bytes;
            outcome.failed = removed.failed;
        }
        Ok(Rebalanced { outcome, unseen })
    });
    done.map_err(|error| not_removed(error, written.get()))
}

/// Says of an error what was written before it, and stays.
fn not_removed(error: CommandError, written: u64) -> CommandError {
    if written == 0 {
        return error;
    }
    let written = counted(written, "piece", "pieces");
    error.state(format!(
        "wrote {written} where they belong, which stay; what is stored twice may still be there"
    ))
}

/// Removes what is stored twice, in this device's turn.
async fn remove_surplus(
    engine: &mut Engine,
    pool: &Pool,
    version: u64,
    takes_over: bool,
) -> sync::error::Result<RepairOutcome> {
    let inventory = pool.inventory().await;
    let (_, removals) = pool.plan_rebalance(&inventory).count();
    if removals == 0 || inventory.unseen().next().is_some() {
        return Ok(RepairOutcome::default());
    }
    let turn = engine.begin_turn(version, takes_over).await?;
    let outcome = remove_in_turn(pool, &inventory, &turn).await;
    engine.end_turn().await?;
    Ok(outcome)
}

async fn remove_in_turn(pool: &Pool, inventory: &Inventory, turn: &TurnGuard) -> RepairOutcome {
    let may_remove = || {
        let turn = turn.clone();
        let holds: futures_util::future::BoxFuture<'static, bool> =
            Box::pin(async move { turn.holds().await });
        holds
    };
    let carry_out = CarryOut { may_remove: Some(&may_remove), ..CarryOut::default() };
    pool.carry_out(&pool.plan_rebalance(inventory), carry_out).await
}

#[cfg(test)]
mod tests {
    use sync::SyncError;

    use super::*;

    #[test]
    fn an_error_after_pieces_were_written_does_not_say_that_nothing_was_done() {
        let error = || CommandError::from(SyncError::SettingsChanged);
        let state = |written| not_removed(error(), written).state.unwrap();
        assert!(state(3).starts_with("wrote 3 pieces where they belong"), "{}", state(3));
        assert!(state(0).ends_with("nothing else was changed"), "{}", state(0));
    }
}
