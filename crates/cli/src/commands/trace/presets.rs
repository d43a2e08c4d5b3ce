//! `syncline trace gen`: which numbers a preset has.

use std::path::Path;

use lab::dataset::Dataset;
use lab::dataset::made::Size;
use lab::trace::MadeDataset;
use lab::trace::generate::{
    self, Folder, Homes, Iot, MetaSync, Reading, StackSync, Start, Thesis, UbuntuOne, Versions,
    WebR2sync, Workload,
};
use serde_json::json;

use crate::arguments::{
    TraceFolder, TraceHomesArguments, TraceIotArguments, TraceMetasyncArguments, TracePreset,
    TraceReading, TraceStacksyncArguments, TraceStart, TraceThesisArguments,
    TraceUbuntuoneArguments, TraceVersionsArguments, TraceWebr2syncArguments,
};
use crate::commands::experiments::refusal;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::text::{counted, parse_size, size};
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn generate(context: &Context<'_>, preset: &TracePreset) -> Result<u8> {
    match preset {
        TracePreset::Stacksync(it) => make(context, &stacksync(it)?, &it.common.out),
        TracePreset::Webr2sync(it) => make(context, &webr2sync(it), &it.common.out),
        TracePreset::Metasync(it) => make(context, &metasync(it)?, &it.common.out),
        TracePreset::Iot(it) => make(context, &iot(it), &it.common.out),
        TracePreset::Homes(it) => make(context, &homes(it)?, &it.common.out),
        TracePreset::Ubuntuone(it) => make(context, &ubuntuone(it)?, &it.common.out),
        TracePreset::ThesisA(it) => make(context, &thesis("A", it), &it.out),
        TracePreset::ThesisB(it) => make(context, &thesis("B", it), &it.out),
        TracePreset::ThesisC(it) => make(context, &thesis("C", it), &it.out),
        TracePreset::ThesisD(it) => make(context, &thesis("D", it), &it.out),
        TracePreset::Versions(it) => make(context, &versions(it)?, &it.out),
    }
}

fn make(context: &Context<'_>, workload: &dyn Workload, out: &Path) -> Result<u8> {
    let made = generate::save(workload, out).map_err(refusal)?;
    context.ui.json(&json!({
        "schema": "syncline.trace/1", "type": "made", "trace": out.display().to_string(), "changes": made.changes,
        "tree_files": made.tree_files, "tree_bytes": made.tree_bytes,
    }));
    let changes = counted(made.changes, "change", "changes");
    let files = counted(made.tree_files, "file", "files");
    let tree = size(made.tree_bytes);
    context.ui.say(Symbol::Done, format!("{}: {changes} to {files}, {tree}", out.display()));
    Ok(0)
}

fn stacksync(it: &TraceStacksyncArguments) -> Result<StackSync> {
    Ok(StackSync {
        seed: it.common.seed,
        clients: it.common.clients as usize,
        tree_bytes: bytes(&it.tree)?,
        changes: it.changes,
        interval_ms: it.interval_ms,
        reading: reading(it.reading),
    })
}

fn webr2sync(it: &TraceWebr2syncArguments) -> WebR2sync {
    WebR2sync {
        seed: it.common.seed,
        clients: it.common.clients as usize,
        files: it.files as usize,
        rounds: it.rounds,
        interval_ms: it.interval_ms,
    }
}

fn metasync(it: &TraceMetasyncArguments) -> Result<MetaSync> {
    let folder = match it.folder {
        TraceFolder::Source => Folder::Source,
        TraceFolder::Paper => Folder::Paper,
        TraceFolder::Photos => Folder::Photos,
    };
    let tree_bytes = it.tree.as_deref().map_or(Ok(folder.bytes()), bytes)?;
    let (seed, clients) = (it.common.seed, it.common.clients as usize);
    Ok(MetaSync { seed, clients, folder, tree_bytes })
}

fn iot(it: &TraceIotArguments) -> Iot {
    Iot {
        seed: it.common.seed,
        clients: it.common.clients as usize,
        sensors: it.sensors as usize,
        files: it.files,
        interval_ms: it.interval_ms,
        start: match it.start {
            TraceStart::Together => Start::Together,
            TraceStart::Spread => Start::Spread,
        },
    }
}

fn homes(it: &TraceHomesArguments) -> Result<Homes> {
    Ok(Homes {
        seed: it.common.seed,
        clients: it.common.clients as usize,
        users: it.users as usize,
        tree_bytes: bytes(&it.tree)?,
        weeks: it.weeks,
        changes: it.changes,
        reading: reading(it.reading),
    })
}

fn ubuntuone(it: &TraceUbuntuoneArguments) -> Result<UbuntuOne> {
    Ok(UbuntuOne {
        seed: it.common.seed,
        clients: it.common.clients as usize,
        users: it.users as usize,
        tree_bytes: bytes(&it.tree)?,
        changes: it.changes,
    })
}

fn thesis(name: &str, it: &TraceThesisArguments) -> Thesis {
    let size = if it.full { Size::Full } else { Size::Small };
    Thesis {
        name: format!("thesis-{}", name.to_lowercase()),
        dataset: MadeDataset { name: name.to_owned(), size, seed: it.seed },
        clients: it.clients as usize,
        interval_ms: it.interval_ms,
        versions: it.versions.map_or(usize::MAX, |count| count as usize),
    }
}

fn versions(it: &TraceVersionsArguments) -> Result<Versions> {
    let name = it.folder.file_name().unwrap_or_default().to_string_lossy();
    // It is opened first: where it is no folder of versions, nothing is written.
    let dataset = Dataset::open(name, &it.folder).map_err(refusal)?;
    let (clients, interval_ms) = (it.clients as usize, it.interval_ms);
    Ok(Versions { dataset, clients, interval_ms })
}

fn bytes(text: &str) -> Result<u64> {
    parse_size(text)
        .ok_or_else(|| CommandError::usage(format!("'{text}' is no size")).help("750MB", "is one"))
}

fn reading(reading: TraceReading) -> Reading {
    match reading {
        TraceReading::Paper => Reading::Paper,
        TraceReading::Benchbox => Reading::BenchBox,
    }
}
