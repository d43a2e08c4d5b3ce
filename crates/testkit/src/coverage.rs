//! Which faults and states came to be, so that a run that never met what it claims to survive fails.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// Something that must happen sometimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it all, and they are what the table shows")]
pub enum Fault {
    KilledAtCall,
    KilledAtAwait,
    KilledAtCommit,
    PowerCut,
    BytesLost,
    DatabaseFellBehind,
    DiskError,
    NoSpaceOnDisk,
    FlushFailed,
    UserBetweenCalls,
    StoreErrorBefore,
    StoreErrorAfter,
    StoreLatePut,
    StoreDuplicatePut,
    StoreNoSpace,
    StoreNotDurable,
    RequestLost,
    ReplyLost,
    RequestTwice,
    EventLost,
    EventTwice,
    ServerDown,
    ServerRestored,
    DatabaseDeleted,
    DatabaseRestored,
    DeviceCopied,
    Unmounted,
    ClockJump,
    Rejected,
    NameTaken,
    NodesMerged,
    DirectoryRevived,
    MoveVoid,
    DeletionVoid,
    CopyKept,
    SuspectFound,
    CutOffSeen,
    PackStored,
    DeltaStored,
    DeltaCopied,
    DocumentStored,
    PictureStored,
    FileChangedWhileRead,
    RescanAfterHint,
    CleanedUp,
    PagesCleanedUp,
    FenceOvertaken,
    CommitFenced,
    VersionDropped,
    OneStoreGone,
    OneStoreSlow,
    OneStoreFull,
    OneStoreReadOnly,
    OneStoreFailsAtRandom,
    OneStoreListsOld,
    OneStoreGivesOthers,
    OneStoreRestored,
    OneStoreWiped,
}

impl Fault {
    /// What happens only where there are several stores.
    pub const OF_SEVERAL: [Self; 9] = [
        Self::OneStoreGone,
        Self::OneStoreSlow,
        Self::OneStoreFull,
        Self::OneStoreReadOnly,
        Self::OneStoreFailsAtRandom,
        Self::OneStoreListsOld,
        Self::OneStoreGivesOthers,
        Self::OneStoreRestored,
        Self::OneStoreWiped,
    ];

    /// What happens only where a server or a single store orders the log.
    const OF_ONE: [Self; 7] = [
        Self::RequestLost,
        Self::ReplyLost,
        Self::RequestTwice,
        Self::EventLost,
        Self::EventTwice,
        Self::ServerDown,
        Self::ServerRestored,
    ];

    /// Everything that there is in worlds with one store or a server.
    pub const ALL: [Self; 49] = [
        Self::KilledAtCall,
        Self::KilledAtAwait,
        Self::KilledAtCommit,
        Self::PowerCut,
        Self::BytesLost,
        Self::DatabaseFellBehind,
        Self::DiskError,
        Self::NoSpaceOnDisk,
        Self::FlushFailed,
        Self::UserBetweenCalls,
        Self::StoreErrorBefore,
        Self::StoreErrorAfter,
        Self::StoreLatePut,
        Self::StoreDuplicatePut,
        Self::StoreNoSpace,
        Self::StoreNotDurable,
        Self::RequestLost,
        Self::ReplyLost,
        Self::RequestTwice,
        Self::EventLost,
        Self::EventTwice,
        Self::ServerDown,
        Self::ServerRestored,
        Self::DatabaseDeleted,
        Self::DatabaseRestored,
        Self::DeviceCopied,
        Self::Unmounted,
        Self::ClockJump,
        Self::Rejected,
        Self::NameTaken,
        Self::NodesMerged,
        Self::DirectoryRevived,
        Self::MoveVoid,
        Self::DeletionVoid,
        Self::CopyKept,
        Self::SuspectFound,
        Self::CutOffSeen,
        Self::PackStored,
        Self::DeltaStored,
        Self::DeltaCopied,
        Self::DocumentStored,
        Self::PictureStored,
        Self::FileChangedWhileRead,
        Self::RescanAfterHint,
        Self::CleanedUp,
        Self::PagesCleanedUp,
        Self::FenceOvertaken,
        Self::CommitFenced,
        Self::VersionDropped,
    ];
}

/// How often each happened; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Coverage(Arc<Mutex<BTreeMap<Fault, u64>>>);

impl Coverage {
    /// Notes that it happened.
    pub fn hit(&self, fault: Fault) {
        *self.0.lock().entry(fault).or_default() += 1;
    }

    /// Returns how often each happened.
    pub fn counts(&self) -> BTreeMap<Fault, u64> {
        self.0.lock().clone()
    }

    /// Adds what happened elsewhere.
    pub fn add(&self, other: &Self) {
        for (fault, count) in other.counts() {
            *self.0.lock().entry(fault).or_default() += count;
        }
    }

    /// Returns what never happened.
    pub fn missing(&self) -> Vec<Fault> {
        let counts = self.0.lock();
        Fault::ALL.into_iter().filter(|fault| !counts.contains_key(fault)).collect()
    }

    /// Returns what never happened in worlds over several stores.
    pub fn missing_over_stores(&self) -> Vec<Fault> {
        let counts = self.0.lock();
        let all = Fault::ALL.into_iter().filter(|fault| !Fault::OF_ONE.contains(fault));
        all.chain(Fault::OF_SEVERAL).filter(|fault| !counts.contains_key(fault)).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock();
        let happened = |fault: &Fault| counts.contains_key(fault);
        for fault in Fault::ALL.into_iter().chain(Fault::OF_SEVERAL.into_iter().filter(happened)) {
            let count = counts.get(&fault).copied().unwrap_or(0);
            writeln!(formatter, "{:<24}{count:>12}", format!("{fault:?}"))?;
        }
        Ok(())
    }
}
