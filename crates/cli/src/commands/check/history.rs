//! Looking at the history in every store: the objects of the log, and what leads to them.
//!
//! What of them may be written anew, and why, stands in `docs/design/agreement.md`, "Damaged objects".

use std::sync::Arc;

use bytes::Bytes;
use commit_log::serverless::slot_log::inspecting::{Fate, Finding, Flaw, Inspection, Inspector};
use futures_util::future::join_all;
use model::StoreRecord;
use model::codec::encode_message;
use serde_json::{Value, json};
use storage::{ObjectKey, ObjectStore, PutMode};

use crate::connect::{Driver, coordinator};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::folder::{Folder, StoredPlace};
use crate::interrupt::stopped;
use crate::sealed;
use crate::stores;
use crate::text::counted;
use crate::ui::Symbol;
use crate::workspaces::store_identity;

/// How many objects are named one by one.
const LINES_MAX: usize = 20;

type Part = (StoreRecord, Arc<dyn ObjectStore>);

/// What a look at the history has found.
#[derive(Debug, Default)]
pub(super) struct History {
    inspection: Inspection,
    /// The newest entry that this device has folded.
    folded: u64,
}

/// Looks at the history in the stores of a folder, and where it mends, writes anew what is decided.
///
/// # Errors
/// Those of the keys and of this device; a store that does not answer is none.
pub(super) fn inspect(
    context: &Context<'_>,
    folder: &Folder,
    stored: &StoredPlace,
    mends: bool,
) -> Result<History> {
    let driver = Driver::start(context)?;
    let keys = sealed::keys_of_device(context, &driver, folder)?;
    let reached = driver.within(|| coordinator(context, folder, keys.as_ref()))?;
    let Some(log) = reached.slots else { return Ok(History::default()) };
    let state = folder.state()?;
    let folded = state.head()?.map_or(0, |head| head.seq);
    let known = |seq| state.entry(seq).ok().flatten();
    let inspector = Inspector { folded, known: &known, mends };
    let workspace = folder.genesis.workspace();
    let parts: Vec<Part> = driver.within(|| stores::open_pool(&context.home, stored, workspace));
    let work = async {
        let mut inspection = log.inspect(&inspector).await?;
        inspection.findings.extend(look_beside(folder, &parts, mends).await);
        if folder.genesis.mode.sealed().is_some() {
            inspection.findings.extend(look_at_keys(&parts, mends).await);
        }
        let by_place = |one: &Finding, other: &Finding| {
            (&one.store, &one.key).cmp(&(&other.store, &other.key))
        };
        inspection.findings.sort_by(by_place);
        Ok(inspection)
    };
    let inspection = driver.run(async {
        tokio::select! {
            done = work => done,
            code = driver.interrupts().wait() => Err(stopped(code, "syncline check")),
        }
    })?;
    Ok(History { inspection, folded })
}

/// Looks at the identity of each store, and at the genesis in those that agree on nothing.
async fn look_beside(folder: &Folder, parts: &[Part], mends: bool) -> Vec<Finding> {
    let genesis = Bytes::from(encode_message(&folder.genesis));
    let of_part = async |(record, part): &Part| {
        let mut findings = Vec::new();
        let mut note = |key, flaw, fate| {
            findings.push(Finding { store: record.name.clone(), key, flaw, fate });
        };
        let Ok(identity) = store_identity(&**part).await else { return findings };
        if identity != Some(record.identity()) {
            // It may be another store by now: that only a person can tell.
            note(ObjectKey::store_id(), Flaw::Damaged, Fate::Left);
            return findings;
        }
        let key = ObjectKey::genesis();
        if !record.agrees
            && let Ok(found) = part.get(&key).await
            && found.as_ref() != Some(&genesis)
        {
            let flaw = if found.is_some() { Flaw::Damaged } else { Flaw::Missing };
            note(key.clone(), flaw, write(part, &key, genesis.clone(), mends).await);
        }
        findings
    };
    join_all(parts.iter().map(of_part)).await.into_iter().flatten().collect()
}

/// Writes an object of which everybody knows what it must be.
async fn write(part: &Arc<dyn ObjectStore>, key: &ObjectKey, bytes: Bytes, mends: bool) -> Fate {
    if !mends {
        return Fate::Mendable;
    }
    match part.put(key, bytes, PutMode::Overwrite).await {
        Ok(_) => Fate::Mended,
        Err(error) => Fate::Refused(error.to_string()),
    }
}

/// Compares the locked keys of all stores. Damage in them looks like a wrong passphrase, so those of most stores count.
async fn look_at_keys(parts: &[Part], mends: bool) -> Vec<Finding> {
    let all: sealed::Stores = parts.iter().map(|(_, part)| part.clone()).collect();
    let Ok(before) = sealed::differing(&all).await else { return Vec::new() };
    let mut after = Vec::new();
    if mends && !before.is_empty() && sealed::catch_up(&all).await.is_ok() {
        let left = sealed::differing(&all).await;
        after = left.unwrap_or_else(|_| before.clone());
    }
    let of_store = |differing: sealed::Differing| {
        let is_left = after.iter().any(|left| left.store == differing.store);
        let fate = match (differing.is_agreed, mends) {
            (_, true) if !is_left => Fate::Mended,
            (true, false) => Fate::Mendable,
            _ => Fate::Left,
        };
        let flaw = if differing.is_there { Flaw::Damaged } else { Flaw::Missing };
        let store = parts[differing.store].0.name.clone();
        Finding { store, key: differing.key, flaw, fate }
    };
    before.into_iter().map(of_store).collect()
}

impl History {
    /// How many objects were written anew.
    pub(super) fn mended(&self) -> usize {
        self.with_fate(|fate| *fate == Fate::Mended)
    }

    /// Whether everything is as it should be now.
    pub(super) fn is_whole(&self) -> bool {
        self.mended() == self.inspection.findings.len()
    }

    /// Whether an entry that was there is in no store any more, and this device does not remember it.
    pub(super) fn has_lost_entries(&self) -> bool {
        self.inspection.findings.iter().any(|finding| {
            let slot = finding.key.as_log_slot().map(|(slot, _)| slot);
            finding.fate == Fate::Left
                && finding.flaw == Flaw::Damaged
                && slot.is_some_and(|slot| slot <= self.folded)
        })
    }

    /// Stores that did not answer, and why.
    pub(super) fn unseen(&self) -> &[(String, String)] {
        &self.inspection.unseen
    }

    fn with_fate(&self, is_meant: impl Fn(&Fate) -> bool) -> usize {
        self.inspection.findings.iter().filter(|finding| is_meant(&finding.fate)).count()
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let of = |finding: &Finding| {
            json!({
                "store": finding.store,
                "object": finding.key.as_str(),
                "flaw": flaw_word(finding.flaw),
                "fate": fate_word(&finding.fate),
            })
        };
        json!({
            "objects": self.inspection.objects,
            "read_bytes": self.inspection.read_bytes,
            "findings": self.inspection.findings.iter().map(of).collect::<Vec<_>>(),
        })
    }

    /// Says what was found and done.
    pub(super) fn tell(&self, context: &Context<'_>) {
        let ui = context.ui;
        let findings = &self.inspection.findings;
        let mended = self.mended();
        if mended > 0 {
            let objects = counted(mended as u64, "object", "objects");
            ui.say(Symbol::Done, format!("wrote {objects} of the history anew"));
        }
        let wrong = findings.iter().filter(|finding| finding.fate != Fate::Mended);
        for finding in wrong.clone().take(LINES_MAX) {
            ui.say(Symbol::Attention, line(finding));
        }
        if let Some(more) = wrong.clone().count().checked_sub(LINES_MAX).filter(|more| *more > 0) {
            ui.note(format!("and {more} more objects of the history"));
        }
        if self.with_fate(|fate| *fate == Fate::Mendable) > 0 {
            ui.note(
                "what belongs there in the history is known; `syncline check --repair` writes it anew",
            );
        }
        for finding in wrong.clone().filter(|finding| finding.key == ObjectKey::store_id()) {
            let store = &finding.store;
            ui.note(format!(
                "'{store}' counts for nothing until `syncline backend renew {store}` lets it begin anew"
            ));
        }
        let is_undecided =
            |finding: &&Finding| finding.fate == Fate::Left && finding.key.as_log_slot().is_some();
        if wrong.clone().any(|finding| is_undecided(&finding)) {
            ui.note(
                "what is left as it is may be a promise that a store has given, and nobody may make one up;                  sync, and check again",
            );
        }
    }
}

fn flaw_word(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::Damaged => "damaged",
        Flaw::Missing => "missing",
        Flaw::Contradicts => "contradicts",
    }
}

fn fate_word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Mendable => "repairable",
        Fate::Mended => "repaired",
        Fate::Left => "left",
        Fate::Refused(_) => "refused",
    }
}

fn line(finding: &Finding) -> String {
    let Finding { store, key, flaw, fate } = finding;
    let what = if let Some((slot, _)) = key.as_log_slot() {
        format!("v{slot} of the history")
    } else if let Some(seq) = key.as_checkpoint() {
        format!("the checkpoint of v{seq}")
    } else {
        match key.as_str().split('/').next().unwrap_or_default() {
            "genesis" => "the beginning of the history".to_owned(),
            "store" => "what says which store it is".to_owned(),
            "keys" => "the locked keys".to_owned(),
            _ => key.to_string(),
        }
    };
    let flaw = match flaw {
        Flaw::Damaged => "damaged",
        Flaw::Missing => "missing",
        Flaw::Contradicts => "not what was agreed on",
    };
    let more = match fate {
        Fate::Refused(reason) => format!("; it was not written: {reason}"),
        Fate::Left => "; left as it is".to_owned(),
        Fate::Mendable | Fate::Mended => String::new(),
    };
    format!("{store}: {what} is {flaw}{more}")
}

/// The exit code of a history that has lost an entry.
pub(super) const LOST: Code = Code::LogDamaged;
