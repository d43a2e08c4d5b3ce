//! A store that is gone, slow, full, read-only, fails at random, lists what was, gives other objects, or forgets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use crate::clock::VirtualTime;
use crate::coverage::Coverage;
use crate::random::Dice;
use crate::store::{MemoryStore, StoreDefect};

use super::SeveralDefect;

type Result<T> = std::result::Result<T, StorageError>;

/// How long a slow store takes.
const SLOW: Duration = Duration::from_secs(10);

/// How often a store that fails at random does, in a thousand.
const RANDOM_PERMILLE: u32 = 300;

/// How often a store gives the bytes of another object, in a thousand.
const OTHER_PERMILLE: u32 = 500;

/// What a store suffers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It does not answer, and says so at once.
    Gone,
    /// It takes ten seconds for each answer.
    Slow,
    /// It takes nothing.
    Full,
    /// It takes nothing and removes nothing.
    ReadOnly,
    /// Some calls fail, before or after they happened.
    Random,
    /// It lists what it had this morning.
    OldLists,
    /// It gives other objects than it was asked for.
    OtherBytes,
    /// Its data are those of this morning; what it said for the log stays.
    Yesterday,
    /// Its data are gone; what it said for the log stays.
    Wiped,
}

impl Trouble {
    /// Draws a trouble, perhaps one that loses data.
    pub fn draw(dice: &mut Dice, may_lose: bool) -> Self {
        let all = [
            Self::None,
            Self::Gone,
            Self::Slow,
            Self::Full,
            Self::ReadOnly,
            Self::Random,
            Self::OldLists,
            Self::OtherBytes,
            Self::Yesterday,
            Self::Wiped,
        ];
        let count = if may_lose { all.len() } else { all.len() - 2 };
        all[dice.index(count)]
    }
}

/// A store in memory with troubles; clones share it.
#[derive(Debug, Clone)]
pub struct TroubledStore {
    memory: MemoryStore,
    time: VirtualTime,
    coverage: Coverage,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    trouble: Trouble,
    dice: Dice,
    morning: BTreeMap<String, Bytes>,
    /// Says that it has taken data, and has not.
    loses: bool,
}

fn is_data(key: &str) -> bool {
    ["packs/", "blocks/", "pages/"].iter().any(|kind| key.starts_with(kind))
}

impl TroubledStore {
    /// Makes an empty store that is well, but for what is wrong with it on purpose.
    pub fn new(
        dice: Dice,
        time: VirtualTime,
        coverage: Coverage,
        defect: Option<SeveralDefect>,
    ) -> Self {
        let loses = defect == Some(SeveralDefect::AnswersBeforeDurable);
        let removes_two = defect == Some(SeveralDefect::RemovesTwoPacks);
        let memory = MemoryStore::new(removes_two.then_some(StoreDefect::RemovesTwoPacks));
        let inner = Inner { trouble: Trouble::None, dice, morning: BTreeMap::new(), loses };
        Self { memory, time, coverage, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Returns what it holds, without asking.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Keeps a copy of what it holds, to go back to.
    pub fn remember_today(&self) {
        self.inner.lock().morning = self.memory.snapshot();
    }

    /// Begins to suffer from something.
    pub fn set_trouble(&self, trouble: Trouble) {
        self.coverage.trouble(trouble);
        let mut inner = self.inner.lock();
        inner.trouble = trouble;
        let data = match trouble {
            Trouble::Yesterday => inner.morning.clone(),
            Trouble::Wiped => BTreeMap::new(),
            _ => return,
        };
        let mut objects = self.memory.snapshot();
        objects.retain(|key, _| !is_data(key));
        objects.extend(data.into_iter().filter(|(key, _)| is_data(key)));
        self.memory.restore(objects);
    }

    fn not_reachable(&self) -> StorageError {
        StorageError::NotReachable { store: self.describe(), detail: "it is gone".to_owned() }
    }

    fn chance(&self, permille: u32) -> bool {
        self.inner.lock().dice.chance(permille)
    }

    /// Carries a call out, as far as the trouble lets it.
    async fn call<T>(&self, writes: bool, call: impl Future<Output = Result<T>>) -> Result<T> {
        let trouble = self.inner.lock().trouble;
        let store = self.describe();
        match trouble {
            Trouble::Gone => Err(self.not_reachable()),
            Trouble::Full if writes => Err(StorageError::NoSpace { store }),
            Trouble::ReadOnly if writes => Err(StorageError::ReadOnly { store }),
            Trouble::Slow => {
                let sleep = self.time.sleep(SLOW);
                sleep.await;
                call.await
            }
            Trouble::Random if self.chance(RANDOM_PERMILLE) => match self.chance(500) {
                true => Err(self.not_reachable()),
                false => call.await.and_then(|_| Err(self.not_reachable())),
            },
            _ => call.await,
        }
    }

    /// Returns the key of the object that is given for the one that was asked for.
    fn given(&self, key: &ObjectKey) -> ObjectKey {
        let mut inner = self.inner.lock();
        if inner.trouble != Trouble::OtherBytes || !inner.dice.chance(OTHER_PERMILLE) {
            return key.clone();
        }
        let kind = key.as_str().split('/').next().unwrap_or_default().to_owned();
        let mut others: Vec<String> = self.memory.snapshot().into_keys().collect();
        others.retain(|other| other.split('/').next() == Some(&kind));
        match others.is_empty() {
            true => key.clone(),
            false => {
                let other: &String = inner.dice.pick(&others);
                ObjectKey::new(other).unwrap_or_else(|_| key.clone())
            }
        }
    }
}

#[async_trait]
impl ObjectStore for TroubledStore {
    fn describe(&self) -> String {
        self.memory.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let loses = self.inner.lock().loses && is_data(key.as_str());
        if loses && self.chance(OTHER_PERMILLE) {
            return Ok(PutOutcome::Written);
        }
        self.call(true, self.memory.put(key, bytes, mode)).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let given = self.given(key);
        self.call(false, self.memory.get(&given)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let given = self.given(key);
        self.call(false, self.memory.get_range(&given, range)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let given = self.given(key);
        self.call(false, self.memory.size(&given)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let old = {
            let inner = self.inner.lock();
            (inner.trouble == Trouble::OldLists).then(|| inner.morning.clone())
        };
        match old {
            Some(objects) => {
                let morning = MemoryStore::default();
                morning.restore(objects);
                self.call(false, morning.list(prefix, start_after, limit)).await
            }
            None => self.call(false, self.memory.list(prefix, start_after, limit)).await,
        }
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.call(true, self.memory.delete(key)).await
    }
}
