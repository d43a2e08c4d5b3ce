//! What must be true after a device has died and gone on.

use std::collections::BTreeSet;
use std::sync::Arc;

use commit_log::CommitLog;
use content::WorkspaceKeys;
use model::fold::fold;
use model::{Entry, PlainOpener, Tree};
use storage::pool::repair::{CarryOut, CheckOptions, Depth, Finding, Plan, Problem};
use storage::pool::{Pool, block};
use storage::{ContentStore, ObjectKey};
use sync::engine::SyncReport;

use super::fate::Fate;
use super::{Files, Machine, Place, sync};
use crate::checks::last_pages;
use crate::random::{Dice, SeededRandom};
use crate::several;

/// How often a repair looks again.
const LOOKS_MAX: usize = 3;

fn failed(what: &str) -> impl Fn(sync::SyncError) -> String {
    move |error| format!("{what}: {error}")
}

async fn entries(place: &mut Place) -> Result<Vec<Entry>, String> {
    let opened = place.open(&Fate::new(None), None).await.map_err(failed("the log"))?;
    opened.log.entries(0, u64::MAX).await.map_err(|error| format!("the log: {error}"))
}

/// Returns every node but settings, with the number of its versions and whether it is there. No commit may stand in the log twice.
pub(super) async fn history(place: &mut Place) -> Result<Vec<(String, u64, bool)>, String> {
    let mut tree = Tree::default();
    let mut operations = BTreeSet::new();
    for entry in entries(place).await? {
        if !operations.insert((entry.commit.device, entry.commit.op_id)) {
            return Err(format!("the commit of entry {} is in the log twice", entry.seq));
        }
        let Ok(folded) = fold(&mut tree, &entry, &PlainOpener);
        if let Some(reason) = folded.void {
            return Err(format!("entry {} counts for nothing: {reason}", entry.seq));
        }
    }
    let nodes = tree.nodes().filter(|(id, _)| !id.is_settings());
    let mut history: Vec<_> = nodes
        .map(|(_, node)| (node.record.name.to_string(), node.version, node.is_alive()))
        .collect();
    history.sort();
    Ok(history)
}

/// Returns the objects that the log needs, as a device knows.
fn needed(machine: &Machine) -> Result<BTreeSet<ObjectKey>, String> {
    let state = machine.state.as_ref().ok_or("the device has no database")?;
    let packs = state.pack_page(None, usize::MAX >> 1).map_err(failed("the database"))?;
    let stored = packs.into_iter().filter(|pack| pack.place.inline_seq.is_none());
    Ok(stored.map(|pack| ObjectKey::pack(pack.id)).collect())
}

/// After a cleanup that came to its end no store holds a pack, or a block of one, that nobody needs.
pub(super) fn nothing_left_over(place: &Place, machine: &Machine) -> Result<(), String> {
    let needed = needed(machine)?;
    for (store, keys) in place.data() {
        for key in keys {
            let key = ObjectKey::new(&key).map_err(|error| error.to_string())?;
            let object = block::parse_key(&key).map_or(key.clone(), |(object, _)| object);
            if object.as_page().is_none() && !needed.contains(&object) {
                return Err(format!("store {store} holds {key}, which nobody needs"));
            }
        }
    }
    Ok(())
}

/// After a cleanup that came to its end the newest checkpoint is whole, and nothing is stored of any but the last two.
pub(super) async fn pages(place: &mut Place) -> Result<(), String> {
    let opened = place.open(&Fate::new(None), None).await.map_err(failed("the stores"))?;
    let log_failed = |error: commit_log::CommitLogError| format!("the log: {error}");
    let entries = opened.log.entries(0, u64::MAX).await.map_err(log_failed)?;
    let store = ContentStore::new(Arc::new(opened.pool.clone()));
    let random = Arc::new(SeededRandom::new(Dice::new(0)));
    let keys = WorkspaceKeys::open(&place.genesis, None, random)
        .map_err(|error| format!("the keys: {error}"))?;
    let needed = last_pages(&*opened.log, &store, &keys, &entries).await?;
    for (number, keys) in place.keys().enumerate() {
        let keys: Vec<ObjectKey> = keys.iter().filter_map(|key| ObjectKey::new(key).ok()).collect();
        let objects = keys.iter().map(|key| block::parse_key(key).map_or(key.clone(), |it| it.0));
        for page in objects.filter_map(|key| key.as_page()) {
            if !needed.contains(&page) {
                return Err(format!("store {number} holds page {page}, which nobody needs"));
            }
        }
        let heads = keys.iter().filter(|key| key.as_checkpoint().is_some()).count();
        if heads > 2 {
            return Err(format!("store {number} holds {heads} checkpoints"));
        }
    }
    Ok(())
}

/// Reads every piece of these objects, and returns what is wrong with them, with a plan that mends it. All of them can be had.
async fn look(pool: &Pool, expected: &BTreeSet<ObjectKey>) -> Result<(Vec<Finding>, Plan), String> {
    let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
    let inventory = pool.inventory().await;
    let report = pool.check(&inventory, expected, options).await;
    if !report.unseen.is_empty() {
        return Err(format!("stores were not seen: {:?}", report.unseen));
    }
    let plan = pool.plan_repair(&report);
    let is_wrong =
        |finding: &Finding| expected.contains(&finding.object) && finding.problem.is_risk();
    let risks: Vec<_> = report.findings.into_iter().filter(is_wrong).collect();
    let is_lost =
        |finding: &&Finding| matches!(finding.problem, Problem::Lost | Problem::OutOfReach);
    match risks.iter().find(is_lost) {
        Some(lost) => Err(format!("lost: {lost:?}")),
        None => Ok((risks, plan)),
    }
}

/// Returns how many pieces the stores lack of what the log needs, which can be had all the same.
pub(super) async fn lacking(place: &mut Place) -> Result<usize, String> {
    let needed = several::needed_packs(&entries(place).await?, &PlainOpener);
    let opened = place.open(&Fate::new(None), None).await.map_err(failed("the stores"))?;
    Ok(look(&opened.pool, &needed).await?.0.len())
}

/// Everything that is needed can be had; after a repair, as by `check --repair`, nothing of it lacks anything. Returns how many
/// pieces had to be written.
pub(super) async fn stores(place: &mut Place, machine: &Machine) -> Result<usize, String> {
    let expected = needed(machine)?;
    let opened = place.open(&Fate::new(None), None).await.map_err(failed("the stores"))?;
    let mut mended = 0;
    for _ in 0..LOOKS_MAX {
        let (risks, plan) = look(&opened.pool, &expected).await?;
        if risks.is_empty() {
            return Ok(mended);
        }
        mended += risks.len();
        opened.pool.carry_out(&plan, CarryOut::default()).await;
    }
    Err("a repair does not come to its end".to_owned())
}

/// With any one store gone a new device reads everything.
pub(super) async fn survivors(place: &mut Place, files: &Files) -> Result<(), String> {
    for gone in 0..place.clouds.len() {
        let mut machine = place.machine(10 + gone as u8);
        let fate = (&Fate::new(None), Some(gone));
        let report = place.process_without(&mut machine, fate, sync).await;
        let report = report.map_err(failed(&format!("without store {gone}")))?;
        let is_well =
            |report: SyncReport| report.problems.is_empty() && report.void_entries.is_empty();
        if !report.is_some_and(is_well) {
            return Err(format!("without store {gone} something cannot be had"));
        }
        let compared = files.compare(&machine.folder);
        compared.map_err(|text| format!("without store {gone}: {text}"))?;
    }
    Ok(())
}
