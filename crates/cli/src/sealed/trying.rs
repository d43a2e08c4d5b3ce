//! Opens locked keys with what a person has typed, where stores may have different ones.
//!
//! Damage in locked keys shows only when they are opened, and looks like a wrong passphrase. What more than half of the stores
//! have is believed, and nothing else is tried: whoever changes a passphrase succeeds only so, and the old one opens what a
//! store has that was away. Where no version has so many, one of two stores may have damaged or invented its own, so all are
//! tried before a passphrase is called wrong.

use content::{KeyObject, Secret, Unlocked};
use model::{Genesis, StoreRecord};
use storage::ObjectStore;

use std::sync::Arc;

use super::{Found, Stores, look, ranked};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};

/// Stores by their names.
pub(crate) type NamedStores = Vec<(String, Arc<dyn ObjectStore>)>;

/// Gives stores of a pool the names that they have there.
pub(crate) fn by_name(
    stores: impl IntoIterator<Item = (StoreRecord, Arc<dyn ObjectStore>)>,
) -> NamedStores {
    stores.into_iter().map(|(record, store)| (record.name, store)).collect()
}

/// Locked keys that a secret has opened.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    /// The keys as they are stored.
    pub(crate) keys: KeyObject,
    /// What is in them.
    pub(crate) unlocked: Unlocked,
    /// The stores whose keys are not these, and no older ones, either.
    pub(crate) bad: Vec<String>,
}

impl Opened {
    /// Tells which stores have keys that the secret does not open.
    pub(crate) fn tell(&self, context: &Context<'_>) {
        for store in &self.bad {
            context.ui.note(format!(
                "the locked keys in '{store}' are damaged, or of another passphrase; those of another store were \
                 opened. `syncline key change-passphrase` gives good ones to every store"
            ));
        }
    }
}

/// What came of trying a secret on locked keys; the same are tried once, since each try is dear.
#[derive(Debug)]
pub(crate) struct Trying<'a> {
    genesis: &'a Genesis,
    secret: &'a Secret,
    tried: Vec<(KeyObject, Result<Unlocked>)>,
}

impl<'a> Trying<'a> {
    /// Has tried nothing yet.
    pub(crate) fn new(genesis: &'a Genesis, secret: &'a Secret) -> Self {
        Self { genesis, secret, tried: Vec::new() }
    }

    /// Opens the locked keys that count, of those in all stores that answer.
    ///
    /// # Errors
    /// [`Code::WrongKey`] where the secret opens none of those that may count; [`Code::KeysDamaged`]; [`Code::Missing`] where no
    /// store has any; those of the stores, where none answers.
    pub(crate) async fn open(&mut self, stores: &NamedStores) -> Result<Opened> {
        let plain: Stores = stores.iter().map(|(_, store)| store.clone()).collect();
        let found = look(&plain).await;
        let names: Vec<&str> = stores.iter().map(|(name, _)| name.as_str()).collect();
        self.open_found(&names, &found)
    }

    fn open_found(&mut self, names: &[&str], found: &Found) -> Result<Opened> {
        let mut failures: Vec<(&KeyObject, CommandError)> = Vec::new();
        let (candidates, is_agreed) = ranked(found)?;
        let count = if is_agreed { 1 } else { candidates.len() };
        for keys in &candidates[..count] {
            match self.once(keys) {
                Ok(unlocked) => {
                    let failed: Vec<&KeyObject> = failures.iter().map(|(keys, _)| *keys).collect();
                    let bad = bad_stores(names, found, keys, &failed);
                    return Ok(Opened { keys: (*keys).clone(), unlocked, bad });
                }
                Err(error) => failures.push((keys, error)),
            }
        }
        let is_wrong = |(_, error): &(_, CommandError)| error.code == Code::WrongKey;
        let wrong = failures.iter().position(is_wrong).unwrap_or(0);
        Err(failures.swap_remove(wrong).1)
    }

    fn once(&mut self, keys: &KeyObject) -> Result<Unlocked> {
        if let Some((_, outcome)) = self.tried.iter().find(|(tried, _)| tried == keys) {
            return outcome.clone();
        }
        let outcome = self.secret.unlock(keys, self.genesis).map_err(CommandError::from);
        self.tried.push((keys.clone(), outcome.clone()));
        outcome
    }
}

/// Names the stores whose locked keys were tried in vain, cannot be read, or are others of the same generation or a later one.
fn bad_stores(
    names: &[&str],
    found: &Found,
    opened: &KeyObject,
    failed: &[&KeyObject],
) -> Vec<String> {
    let is_bad = |found: &Result<Option<KeyObject>>| match found {
        Ok(Some(keys)) if keys == opened => false,
        Ok(Some(keys)) => failed.contains(&keys) || keys.generation() >= opened.generation(),
        Ok(None) => false,
        Err(error) => error.code == Code::KeysDamaged,
    };
    let bad = names.iter().zip(found).filter(|(_, found)| is_bad(found));
    bad.map(|(name, _)| (*name).to_owned()).collect()
}
