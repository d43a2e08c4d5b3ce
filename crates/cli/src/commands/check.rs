//! `syncline check`: is everything that the log names stored, in as many stores as it should be, and what it should be?
//!
//! `--repair` takes what is missing from the other stores, and what no store has from the folder. What is still lost then is
//! named version by version. The history is read in every store, whatever the others have of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use storage::ObjectKey;
use storage::pool::repair::Depth;
use sync::Engine;
use sync::engine::{LostVersion, PutBack, ScrubStatus, scrub_status};

use crate::arguments::CheckArguments;
use crate::commands::backend::rebalance::rebalance;
use crate::connect::{Driver, SessionOptions, open_data, with_engine};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::handover;
use crate::report::{scrub_json, scrub_line};
use crate::sealed;
use crate::text::{counted, path_text, size};
use crate::ui::Symbol;

mod history;
mod look;

use history::History;
use look::{Found, Lacking, look};

/// The exit code of something that is partly so.
const PARTLY: u8 = 3;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CheckArguments) -> Result<u8> {
    context.no_dry_run("check")?;
    let folder = Folder::locate(&context.home, &arguments.folder.folder)?;
    let check = Check { context, arguments, folder: &folder };
    let looked = check.look();
    let history = check.look_at_history()?;
    let mut found = match looked {
        // What is damaged in the history may have been in the way.
        Err(_) if history.mended() > 0 => check.look()?,
        Err(error) => {
            history.tell(context);
            return Err(error);
        }
        Ok(found) => found,
    };
    found.note_unseen(history.unseen());
    let mut done = PutBack::default();
    let mut pages = 0;
    if arguments.repair && !(found.lost.is_empty() && found.lost_pages.is_empty()) {
        let (lost, lost_pages) = (found.lost.clone(), found.lost_pages.clone());
        (done, pages) = check.with_engine(async |engine| {
            let done = match lost.is_empty() {
                true => PutBack::default(),
                false => engine.put_back(&lost).await?,
            };
            Ok((done, engine.renew_pages(&lost_pages).await?))
        })?;
        let written = found.written;
        found = check.look()?;
        found.written += written;
        found.note_unseen(history.unseen());
    }
    if arguments.repair && folder.genesis.mode.sealed().is_some() {
        let stores = sealed::stores_of(&context.home, &folder)?;
        let untold = context.runtime()?.block_on(sealed::catch_up(&stores))?;
        sealed::note_untold(&folder, untold)?;
    }
    let misled = check.hints()?;
    let removed = if arguments.repair { check.remove_surplus(&mut found)? } else { 0 };
    let versions = match found.lost.is_empty() {
        true => Vec::new(),
        false => {
            let lost = found.lost.clone();
            check.with_engine(async |engine| engine.versions_made_of(&lost).await)?
        }
    };
    let scrub = scrub_status(&folder.state()?)?;
    Ok(check.tell(&Outcome { found, history, done, pages, removed, versions, scrub, misled }))
}

/// One run of the command.
struct Check<'a> {
    context: &'a Context<'a>,
    arguments: &'a CheckArguments,
    folder: &'a Folder,
}

/// What it has come to.
struct Outcome {
    found: Found,
    history: History,
    done: PutBack,
    pages: u64,
    removed: u64,
    versions: Vec<LostVersion>,
    scrub: Option<ScrubStatus>,
    /// The stores that say wrongly which stores there are.
    misled: Vec<String>,
}

impl Check<'_> {
    fn with_engine<T>(
        &self,
        work: impl AsyncFnMut(&mut Engine) -> sync::error::Result<T>,
    ) -> Result<T> {
        let options = SessionOptions::CHANGE_BESIDE_WATCH;
        with_engine(self.context, self.folder, options, None, work)
    }

    /// Looks at everything that the log names.
    fn look(&self) -> Result<Found> {
        let found = match &self.folder.place {
            Place::Stored(stored) => self.look_at_stores(stored)?,
            Place::Served { .. } => {
                let reads = self.arguments.read_data;
                self.with_engine(async |engine| {
                    let packs = engine.stored_packs().await?;
                    let lost = engine.lost_packs(reads).await?;
                    let mut found = Found::on_server(packs.len() as u64, lost);
                    if reads {
                        found.read_bytes = packs.iter().map(|pack| pack.length).sum();
                    }
                    Ok(found)
                })?
            }
        };
        if self.arguments.read_data {
            let doubtful = found.doubtful();
            self.with_engine(async |engine| engine.trust_but(&doubtful))?;
        }
        Ok(found)
    }

    /// Looks whether each store leads to all of them, and mends that, too.
    fn hints(&self) -> Result<Vec<String>> {
        // The log may have told of other stores just now.
        let folder = Folder::locate(&self.context.home, &self.folder.root)?;
        let driver = Driver::start(self.context)?;
        handover::check_hints(self.context, &driver, &folder, self.arguments.repair)
    }

    /// Looks at the history in every store; on a server it rests in a database.
    fn look_at_history(&self) -> Result<History> {
        let folder = Folder::locate(&self.context.home, &self.folder.root)?;
        match &folder.place {
            Place::Stored(stored) => {
                history::inspect(self.context, &folder, stored, self.arguments.repair)
            }
            Place::Served { .. } => Ok(History::default()),
        }
    }

    /// Removes what is stored twice, where nothing else is wrong. Returns how many pieces were.
    fn remove_surplus(&self, found: &mut Found) -> Result<u64> {
        let is_wrong = found.lacking.count() > 0 || !found.out_of_reach.is_empty();
        // What another device has told meanwhile counts.
        let folder = Folder::locate(&self.context.home, &self.folder.root)?;
        let Place::Stored(stored) = &folder.place else { return Ok(0) };
        if found.surplus == 0 || is_wrong || !found.unseen.is_empty() {
            return Ok(0);
        }
        match rebalance(self.context, &folder, stored, false) {
            Ok(done) => {
                found.surplus = found.surplus.saturating_sub(done.removed());
                Ok(done.removed())
            }
            // A check is no reason to wait for that.
            Err(error) if error.code == Code::NotOurTurn => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn look_at_stores(&self, stored: &StoredPlace) -> Result<Found> {
        let expected: BTreeSet<ObjectKey> = self.with_engine(async |engine| {
            let packs =
                engine.stored_packs().await?.into_iter().map(|pack| ObjectKey::pack(pack.id));
            let pages = engine.stored_pages().await?.into_iter().map(ObjectKey::page);
            Ok(packs.chain(pages).collect())
        })?;
        // The log may have told of other stores just now.
        let folder = Folder::locate(&self.context.home, &self.folder.root)?;
        let stored = if let Place::Stored(newer) = &folder.place { newer } else { stored };
        let runtime = self.context.runtime()?;
        let pool = {
            let _guard = runtime.enter();
            open_data(self.context, &folder, stored)
        };
        let depth = if self.arguments.read_data { Depth::Deep } else { Depth::Quick };
        Ok(runtime.block_on(look(&pool, &expected, depth, self.arguments.repair)))
    }

    /// Says what was found. Returns the exit code: 0 where everything is as it should be, 3 where redundancy is missing, 8
    /// where a version of a file is lost.
    fn tell(&self, outcome: &Outcome) -> u8 {
        let Outcome { found, history, done, pages, removed, versions, scrub, misled } = outcome;
        let ui = self.context.ui;
        let lost_pages = found.lost_pages.len() as u64;
        // Lost packs that no version needs are nobody's loss: their chunks are elsewhere, or in no file.
        let lost = if versions.is_empty() { 0 } else { found.lost.len() as u64 };
        let replaced = found.lost.len() as u64 - lost;
        // A piece of what is lost and not needed is not missed.
        let lacking = match lost + lost_pages {
            0 => found.lacking,
            _ => found.lacking.and(found.lacking_of_lost),
        };
        ui.json(&json!({
            "schema": "syncline.check/1",
            "type": "summary",
            "objects": found.objects,
            "pieces": found.pieces,
            "read_bytes": found.read_bytes,
            "missing": lacking.missing,
            "damaged": lacking.damaged,
            "repaired": found.written,
            "put_back_packs": done.packs,
            "put_back_bytes": done.bytes,
            "renewed_pages": pages,
            "surplus": found.surplus,
            "removed": removed,
            "lost": lost + lost_pages,
            "replaced": replaced,
            "out_of_reach": found.out_of_reach.len(),
            "unseen_stores": found.unseen.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "misleading_stores": misled,
            "lost_versions": versions.iter().map(version_json).collect::<Vec<_>>(),
            "history": history.json(),
            "scrub": scrub_json(scrub.as_ref()),
        }));
        self.tell_what_was_done(outcome, replaced);
        history.tell(self.context);
        let looked = self.looked(found);
        let is_whole = found.out_of_reach.is_empty() && lacking.count() == 0;
        if lost + lost_pages > 0 {
            self.tell_lacks(&looked, found, lacking);
            self.tell_losses(outcome, lost + lost_pages);
            return Code::Missing.exit();
        }
        if is_whole {
            ui.say(Symbol::Done, format!("{looked}: all there"));
        }
        if history.has_lost_entries() {
            return history::LOST.exit();
        }
        if is_whole {
            let is_well = found.unseen.is_empty()
                && (misled.is_empty() || self.arguments.repair)
                && history.is_whole();
            return if is_well { 0 } else { PARTLY };
        }
        self.tell_lacks(&looked, found, lacking);
        if lacking.count() > 0 && !self.arguments.repair {
            ui.note("nothing is lost; `syncline check --repair` adds what is missing");
        }
        PARTLY
    }

    fn tell_what_was_done(&self, outcome: &Outcome, replaced: u64) {
        let Outcome { found, done, pages, removed, scrub, .. } = outcome;
        let ui = self.context.ui;
        if found.written > 0 {
            ui.say(Symbol::Done, format!("repaired {}", pieces(found.written)));
        }
        if done.packs > 0 {
            let chunks = counted(done.chunks, "lost chunk", "lost chunks");
            ui.say(Symbol::Done, format!("put back {chunks}, {} in all", size(done.bytes)));
        }
        if *pages > 0 {
            let pages = counted(*pages, "page", "pages");
            ui.say(Symbol::Done, format!("made {pages} of the checkpoint anew"));
        }
        if *removed > 0 {
            let removed = format!("removed {} that were stored twice", pieces(*removed));
            ui.say(Symbol::Done, removed);
        } else if found.surplus > 0 {
            let surplus = pieces(found.surplus);
            ui.note(format!("{surplus} stored twice; `syncline backend rebalance` removes them"));
        }
        if replaced > 0 {
            let packs = counted(replaced, "lost pack is", "lost packs are");
            ui.note(format!("{packs} not needed any more: what files are made of is elsewhere"));
        }
        if let Some(scrub) = scrub {
            ui.answer(scrub_line(self.context, scrub));
        }
        for (name, reason) in &found.unseen {
            ui.note(format!("'{name}' does not answer: {reason}"));
        }
    }

    fn looked(&self, found: &Found) -> String {
        let read = match self.arguments.read_data {
            true => format!(", {} read", size(found.read_bytes)),
            false => String::new(),
        };
        let objects = counted(found.objects, "object", "objects");
        format!("{objects} in {}{read}", pieces(found.pieces))
    }

    fn tell_lacks(&self, looked: &str, found: &Found, lacking: Lacking) {
        let Lacking { missing, damaged } = lacking;
        let line = format!("{looked}: {} missing, {damaged} damaged", pieces(missing));
        self.context.ui.say(Symbol::Attention, line);
        if !found.out_of_reach.is_empty() {
            let objects = counted(found.out_of_reach.len() as u64, "object is", "objects are");
            let line = format!("{objects} out of reach while stores are away");
            self.context.ui.say(Symbol::Attention, line);
        }
    }

    fn tell_losses(&self, outcome: &Outcome, lost: u64) {
        let ui = self.context.ui;
        let objects = counted(lost, "object is", "objects are");
        ui.say(Symbol::Attention, format!("{objects} lost; what is made of them:"));
        for version in &outcome.versions {
            let what = if version.is_current { "now" } else { "history" };
            ui.answer(format!("v{:<6} {what:8} {}", version.seq, version.path));
        }
        if self.arguments.repair {
            ui.note(
                "`syncline check --repair` on a device that still has these files puts them back",
            );
        } else {
            ui.note("`syncline check --repair` puts back what this folder still has of them");
        }
    }
}

fn pieces(count: u64) -> String {
    counted(count, "piece", "pieces")
}

fn version_json(version: &LostVersion) -> Value {
    json!({
        "path": path_text(&version.path),
        "version": version.seq,
        "is_current": version.is_current,
    })
}
