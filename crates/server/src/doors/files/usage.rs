//! What a workspace holds, as JSON.

use std::sync::Arc;

use axum::Json;
use serde::Serialize;

use super::Target;
use crate::error::Result;
use crate::files::Usage;
use crate::services::files::days::{DAYS_SHOWN, SECONDS_OF_DAY};
use crate::services::files::usage::{FileKind, Sum};

#[derive(Debug, Serialize)]
struct KindLine {
    kind: &'static str,
    #[serde(flatten)]
    sum: SumLine,
}

#[derive(Debug, Serialize)]
struct SumLine {
    files: u64,
    bytes: u64,
}

impl From<Sum> for SumLine {
    fn from(Sum { files, bytes }: Sum) -> Self {
        Self { files, bytes }
    }
}

/// The files of a workspace that the server can read, and how they are kept.
#[derive(Debug, Serialize)]
struct ContentLine {
    /// The files that are there, by kinds; all kinds in the same order always.
    kinds: Vec<KindLine>,
    /// The last versions of those that are deleted.
    deleted: SumLine,
    packs: PacksLine,
}

#[derive(Debug, Serialize)]
struct PacksLine {
    count: u64,
    /// Their bytes in the store.
    stored_bytes: u64,
    /// The bytes of the pieces in them before they were compressed; nothing where not all of them were looked into.
    content_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct DayLine {
    /// When it began (UTC), in seconds since 1970.
    day: i64,
    /// How many bytes of packs came.
    stored_bytes: u64,
}

/// What a workspace holds.
#[derive(Debug, Serialize)]
pub(super) struct UsageAnswer {
    /// Up to which entry of the log it was looked at.
    seq: u64,
    /// All that counts towards the quota of the owner: packs, the log, and what devices keep beside them.
    used_bytes: u64,
    /// Nothing where the workspace is encrypted.
    content: Option<ContentLine>,
    /// The days on which something came, the oldest first.
    days: Vec<DayLine>,
    /// When the first day began of which all is known; nothing where all of them are.
    days_since: Option<i64>,
}

impl UsageAnswer {
    fn new(used_bytes: u64, usage: &Arc<Usage>, now: i64) -> Self {
        let content = usage.files.as_ref().map(|(files, packs)| ContentLine {
            kinds: FileKind::ALL
                .iter()
                .zip(files.kinds)
                .map(|(kind, sum)| KindLine { kind: kind.word(), sum: sum.into() })
                .collect(),
            deleted: files.deleted.into(),
            packs: PacksLine {
                count: packs.count,
                stored_bytes: packs.stored,
                content_bytes: packs.content,
            },
        });
        let day = |day: i64| day * SECONDS_OF_DAY;
        let line = |(at, bytes): (&i64, &u64)| DayLine { day: day(*at), stored_bytes: *bytes };
        // What was counted on another day may be older by now.
        let oldest = now.div_euclid(SECONDS_OF_DAY) - DAYS_SHOWN + 1;
        let days = usage.days.sums.range(oldest..).map(line).collect();
        let days_since = usage.days.since.map(day);
        Self { seq: usage.head.seq, used_bytes, content, days, days_since }
    }
}

/// Tells what a workspace holds.
pub(super) async fn show(target: Target) -> Result<Json<UsageAnswer>> {
    let Target { app, caller, workspace, .. } = target;
    let (found, usage) = app.usage(caller, workspace).await?;
    Ok(Json(UsageAnswer::new(found.used_bytes, &usage, app.now())))
}
