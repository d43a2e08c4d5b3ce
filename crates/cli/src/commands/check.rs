//! `syncline check`: is everything that the log names stored, in as many stores as it should be, and what it should be?

use std::collections::{BTreeSet, HashSet};

use model::PackId;
use serde_json::{Value, json};
use storage::ObjectKey;
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, CheckOptions, CheckReport, Depth, Problem};
use sync::engine::LostVersion;

use crate::arguments::CheckArguments;
use crate::connect::{SessionOptions, open_data, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::text::{counted, path_text, size};
use crate::ui::Symbol;

/// The exit code of something that is partly so.
const PARTLY: u8 = 3;

/// How often a repair is followed by another look, because stores change while it works.
const LOOKS_MAX: usize = 3;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CheckArguments) -> Result<u8> {
    context.no_dry_run("check")?;
    let folder = Folder::locate(&context.home, &arguments.folder.folder)?;
    let Place::Stored(stored) = &folder.place else {
        let headline = "checking what a server stores is not in this release";
        return Err(
            CommandError::new(Code::NotInThisRelease, headline).state("nothing was changed")
        );
    };
    let options = SessionOptions::CHANGE_BESIDE_WATCH;
    let packs =
        with_engine(context, &folder, options, None, async |engine| engine.stored_packs().await)?;
    let expected = packs.iter().map(|pack| ObjectKey::pack(pack.id)).collect();
    let runtime = context.runtime()?;
    let pool = {
        let _guard = runtime.enter();
        open_data(context, &folder, stored)
    };
    let depth = if arguments.read_data { Depth::Deep } else { Depth::Quick };
    let found = runtime.block_on(look(&pool, &expected, depth, arguments.repair));
    let lost: HashSet<PackId> = found.report.lost().filter_map(ObjectKey::as_pack).collect();
    let versions = match lost.is_empty() {
        true => Vec::new(),
        false => with_engine(context, &folder, options, None, async |engine| {
            engine.versions_made_of(&lost).await
        })?,
    };
    Ok(tell(context, arguments, &found, &versions))
}

/// What a check has found and done.
struct Found {
    /// How it is now.
    report: CheckReport,
    /// How many pieces were written.
    written: u64,
}

impl Found {
    fn count(&self, is_meant: impl Fn(&Problem) -> bool) -> u64 {
        self.report.findings.iter().filter(|finding| is_meant(&finding.problem)).count() as u64
    }
}

/// Looks, and repairs what can be repaired until a look finds nothing more to do.
async fn look(pool: &Pool, expected: &BTreeSet<ObjectKey>, depth: Depth, repairs: bool) -> Found {
    let options = CheckOptions { depth, ..CheckOptions::default() };
    let mut written = 0;
    let mut looks = 0;
    loop {
        let inventory = pool.inventory().await;
        let report = pool.check(&inventory, expected, options).await;
        looks += 1;
        let plan = pool.plan_repair(&report);
        if !repairs || plan.is_empty() || looks == LOOKS_MAX {
            return Found { report, written };
        }
        written += pool.carry_out(&plan, CarryOut::default()).await.written;
    }
}

/// Says what was found. Returns the exit code: 0 where everything is as it should be, 3 where redundancy is missing, 8 where
/// something is lost.
fn tell(
    context: &Context<'_>,
    arguments: &CheckArguments,
    found: &Found,
    versions: &[LostVersion],
) -> u8 {
    let report = &found.report;
    let lost = found.count(|problem| *problem == Problem::Lost);
    let out_of_reach = found.count(|problem| *problem == Problem::OutOfReach);
    let missing = found.count(|problem| matches!(problem, Problem::Missing { .. }));
    let damaged = found.count(|problem| matches!(problem, Problem::Damaged { .. }));
    let unseen: Vec<&str> = report.unseen.iter().map(|unseen| unseen.name.as_str()).collect();
    context.ui.json(&json!({
        "schema": "syncline.check/1",
        "type": "summary",
        "objects": report.objects,
        "pieces": report.pieces,
        "read_bytes": report.bytes_read,
        "missing": missing,
        "damaged": damaged,
        "repaired": found.written,
        "lost": lost,
        "out_of_reach": out_of_reach,
        "unseen_stores": unseen,
        "lost_versions": versions.iter().map(version_json).collect::<Vec<_>>(),
    }));
    let pieces = |count| counted(count, "piece", "pieces");
    let read = if arguments.read_data {
        format!(", {} read", size(report.bytes_read))
    } else {
        String::new()
    };
    let looked = format!(
        "{} in {}{read}",
        counted(report.objects, "object", "objects"),
        pieces(report.pieces)
    );
    if found.written > 0 {
        context.ui.say(Symbol::Done, format!("repaired {}", pieces(found.written)));
    }
    for unseen in &report.unseen {
        context.ui.note(format!("'{}' does not answer: {}", unseen.name, unseen.reason));
    }
    let risk = missing + damaged;
    if lost + out_of_reach + risk == 0 {
        context.ui.say(Symbol::Done, format!("{looked}: all there"));
        return if unseen.is_empty() { 0 } else { PARTLY };
    }
    let line = format!("{looked}: {} missing, {damaged} damaged", pieces(missing));
    context.ui.say(Symbol::Attention, line);
    if out_of_reach > 0 {
        let objects = counted(out_of_reach, "object is", "objects are");
        context.ui.say(Symbol::Attention, format!("{objects} out of reach while stores are away"));
    }
    if lost > 0 {
        let objects = counted(lost, "object is", "objects are");
        context.ui.say(Symbol::Attention, format!("{objects} lost; what is made of them:"));
        for version in versions {
            let what = if version.is_current { "now" } else { "history" };
            context.ui.answer(format!("v{:<6} {what:8} {}", version.seq, version.path));
        }
        return Code::Missing.exit();
    }
    if risk > 0 && !arguments.repair {
        context.ui.note("nothing is lost; `syncline check --repair` adds what is missing");
    }
    PARTLY
}

fn version_json(version: &LostVersion) -> Value {
    json!({
        "path": path_text(&version.path),
        "version": version.seq,
        "is_current": version.is_current,
    })
}
