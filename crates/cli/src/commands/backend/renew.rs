//! `syncline backend renew`: a store that was emptied takes its place again; and how `watch` finds out that one was.
//!
//! *Participants*: the devices of a workspace, of which several may do this at once, and a store that answers and holds
//! nothing any more. *Invariants*: it gets a new identity, so that nothing which it once said in an agreement is expected of
//! it (`docs/design/agreement.md`, "Groups that change"); its place in the placement stays, so that nothing else moves. By
//! itself a device renews a store only while all others are themselves, and only after it has been empty for long: a disk that
//! is not mounted looks like that, too.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use model::environment::random_bytes;
use model::{Clock, StoreId, StoreRecord};
use storage::{ObjectKey, ObjectStore, StorageError};

use super::exchange::{change_pool, join};
use super::{find, stored_place};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, StoredPlace};
use crate::home::Config;
use crate::stores::{self, Backend};
use crate::system::{SystemClock, SystemRandom};
use crate::ui::Symbol;
use crate::workspaces::{identity_in, store_identity};

/// How long a service must have been empty before it is renewed without the user.
const SERVICE_PATIENCE: Duration = Duration::from_secs(3600);

/// The same for folders at other machines, where a disk may not be mounted.
const FOLDER_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// How often in that time it is looked.
const LOOKS: u32 = 3;

/// How long a store is waited for.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
///
/// # Errors
/// [`Code::Usage`] for a store that was not emptied; those of the stores and the log.
pub(super) fn run(context: &Context<'_>, folder: &Folder, name: &str) -> Result<u8> {
    context.no_dry_run("backend renew")?;
    let record = find(&stored_place(folder)?.pool, name)?.clone();
    let known = stored_place(folder)?;
    let look = async {
        let parts = parts_of(context, folder, known, std::slice::from_ref(&record));
        look_at(&parts[0]).await
    };
    match context.runtime()?.block_on(look) {
        Look::Emptied => {}
        Look::Itself => {
            let headline = format!("'{name}' was not emptied");
            return Err(CommandError::usage(headline)
                .state("nothing was changed")
                .help("syncline check --repair", "writes again what a store lacks"));
        }
        Look::Away(cause) => {
            return Err(CommandError::new(
                Code::StoreUnreachable,
                format!("cannot reach '{name}'"),
            )
            .cause(cause)
            .state("nothing was changed")
            .help("syncline backend rm NAME --dead", "does without it"));
        }
    }
    renew(context, folder, &record)?;
    context.ui.say(Symbol::Done, format!("'{name}' has begun anew"));
    super::rebalance(context, &Folder::locate(&context.home, &folder.root)?)
}

/// Tells whether a store answers, and is not what it was.
pub(super) async fn was_emptied(
    context: &Context<'_>,
    folder: &Folder,
    record: &StoreRecord,
) -> bool {
    let Ok(known) = stored_place(folder) else { return false };
    let parts = parts_of(context, folder, known, std::slice::from_ref(record));
    matches!(look_at(&parts[0]).await, Look::Emptied)
}

/// Lets a store that was emptied take its place again. What it should hold is still to be written.
///
/// # Errors
/// Those of the store and the log; to do it again goes on.
pub(crate) fn renew(context: &Context<'_>, folder: &Folder, record: &StoreRecord) -> Result<()> {
    let known = stored_place(folder)?;
    let url = known.url(record);
    let credentials = context.home.signed_in(url, context.home.credentials(record.id)?);
    let store = Backend { credentials, ..Backend::new(&record.name, url)? }.create()?;
    let new = StoreId::from_bytes(random_bytes(&SystemRandom));
    let runtime = context.runtime()?;
    runtime.block_on(forget_damaged_identity(folder, &store))?;
    // It may be half made by another device, or by this one before it was cut off; then it goes on as what it says.
    let identity = runtime.block_on(join(context, folder, known, &store, new))?;
    drop(runtime);
    change_pool(context, folder, &[], |pool| {
        let is_it = |store: &&mut StoreRecord| store.identity() == record.identity();
        for store in pool.stores.iter_mut().filter(is_it) {
            store.begun_anew = Some(identity).filter(|identity| *identity != store.id);
        }
        Ok(())
    })
    .map(drop)
}

/// Removes from a store what should say which one it is, and can be read by nobody: it would keep the new one out.
async fn forget_damaged_identity(folder: &Folder, store: &Arc<dyn ObjectStore>) -> Result<()> {
    let inside = stores::workspace_store(store.clone(), folder.genesis.workspace());
    let key = ObjectKey::store_id();
    // Read once: what another device wrote meanwhile is what this one goes on with.
    let text = inside.get(&key).await?;
    if text.is_some_and(|text| identity_in(&text).is_none()) {
        inside.delete(&key).await?;
    }
    Ok(())
}

/// What a look at a store has shown.
enum Look {
    /// It is what it was.
    Itself,
    /// It answers, and is not what it was.
    Emptied,
    /// It cannot be told.
    Away(String),
}

type Part = (StoreRecord, Arc<dyn ObjectStore>);

fn parts_of(
    context: &Context<'_>,
    folder: &Folder,
    stored: &StoredPlace,
    records: &[StoreRecord],
) -> Vec<Part> {
    let workspace = folder.genesis.workspace();
    let open = |record: &StoreRecord| {
        (record.clone(), stores::open_part(&context.home, stored, record, workspace, false))
    };
    records.iter().map(open).collect()
}

async fn look_at((record, part): &Part) -> Look {
    match tokio::time::timeout(LOOK_PATIENCE, store_identity(&**part)).await {
        Err(_) => Look::Away("it does not answer".to_owned()),
        Ok(Ok(identity)) if identity == Some(record.identity()) => Look::Itself,
        Ok(Ok(_) | Err(StorageError::NoStore { .. })) => Look::Emptied,
        Ok(Err(error)) => Look::Away(error.to_string()),
    }
}

/// Looks now and then whether a store was emptied.
pub(crate) struct Keeper {
    parts: Vec<Part>,
    patience: Vec<Option<Duration>>,
    clock: Arc<SystemClock>,
}

impl Keeper {
    /// Makes one for the stores of a folder; nothing where no store may be renewed without the user.
    pub(crate) fn new(
        context: &Context<'_>,
        folder: &Folder,
        stored: &StoredPlace,
        config: &Config,
    ) -> Option<Self> {
        let patience_with = |(record, _): &Part| match config.renew_after_s {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => patience_with(stored.url(record)),
        };
        let parts = parts_of(context, folder, stored, &stored.pool.stores);
        let patience: Vec<_> = parts.iter().map(patience_with).collect();
        // Where nothing may be lost there is nothing to begin anew with.
        let may_renew = stored.pool.redundancy.losses() > 0 && patience.iter().any(Option::is_some);
        may_renew.then(|| Self { parts, patience, clock: context.clock.clone() })
    }

    /// Waits until a store has been empty for as long as it takes, and returns which.
    pub(crate) async fn wait(self) -> StoreRecord {
        let least = self.patience.iter().flatten().min().copied();
        let pause = least.unwrap_or(SERVICE_PATIENCE) / LOOKS;
        let mut emptiness = Emptiness::default();
        loop {
            self.clock.sleep(pause).await;
            let looks = join_all(self.parts.iter().map(look_at)).await;
            if let Some(number) = emptiness.judge(&looks, &self.patience, self.clock.elapsed()) {
                return self.parts[number].0.clone();
            }
        }
    }
}

/// Which store has been found empty since when, while all others were themselves.
#[derive(Default)]
struct Emptiness(Option<(usize, Duration)>);

impl Emptiness {
    /// Takes in a look at all stores; returns the one that has been empty for long enough.
    fn judge(
        &mut self,
        looks: &[Look],
        patience: &[Option<Duration>],
        now: Duration,
    ) -> Option<usize> {
        let mut others = looks.iter().enumerate().filter(|(_, look)| !matches!(look, Look::Itself));
        let (Some((number, Look::Emptied)), None) = (others.next(), others.next()) else {
            self.0 = None;
            return None;
        };
        let since = self.0.filter(|(before, _)| *before == number).map_or(now, |(_, since)| since);
        self.0 = Some((number, since));
        patience[number].filter(|patience| now >= since + *patience).map(|_| number)
    }
}

/// Returns how long a store at an address must have been empty; nothing for a folder of this machine, of which nobody can tell
/// whether its disk is mounted.
fn patience_with(url: &str) -> Option<Duration> {
    match url.split(':').next().unwrap_or_default() {
        "file" => None,
        "sftp" | "ftp" | "ftps" | "smb" | "webdav" => Some(FOLDER_PATIENCE),
        _ => Some(SERVICE_PATIENCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_a_disk_that_is_away_is_renewed_soon() {
        assert_eq!(patience_with("file:/mnt/disk"), None);
        assert_eq!(patience_with("sftp://me@nas/cloud"), Some(FOLDER_PATIENCE));
        assert_eq!(patience_with("s3:bucket/cloud"), Some(SERVICE_PATIENCE));
    }

    #[test]
    fn store_is_renewed_when_it_was_empty_for_long_and_alone() {
        let hour = Duration::from_secs(3600);
        let patience = [Some(hour * 3), Some(hour * 3), None];
        let away = || Look::Away(String::new());
        let mut emptiness = Emptiness::default();
        let mut hours = 0;
        let mut judge = |looks: [Look; 3]| {
            hours += 1;
            emptiness.judge(&looks, &patience, hour * hours)
        };
        for _ in 0..3 {
            assert_eq!(judge([Look::Emptied, Look::Itself, Look::Itself]), None);
        }
        assert_eq!(judge([Look::Emptied, Look::Itself, away()]), None, "another is away");
        for _ in 0..3 {
            assert_eq!(judge([Look::Itself, Look::Emptied, Look::Itself]), None);
        }
        assert_eq!(judge([Look::Itself, Look::Emptied, Look::Itself]), Some(1));
        for _ in 0..9 {
            assert_eq!(judge([Look::Emptied, Look::Emptied, Look::Itself]), None, "two at once");
            assert_eq!(judge([Look::Itself, Look::Itself, Look::Emptied]), None, "a folder");
        }
    }
}
