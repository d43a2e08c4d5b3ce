//! Every limit of the server in one place, and the buckets that slow down guessing.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

/// How many bytes of headers a request has at most.
pub const HEADERS_LENGTH_MAX: usize = 16 * 1024;
/// The longest path with its query, in bytes.
pub const URI_LENGTH_MAX: usize = 8 * 1024;
/// The longest JSON body or genesis, in bytes.
pub const SMALL_BODY_LENGTH_MAX: usize = 16 * 1024;
/// The longest object, in bytes.
pub const OBJECT_LENGTH_MAX: u64 = storage::OBJECT_SIZE_MAX;
/// The longest account name, in bytes.
pub const ACCOUNT_NAME_LENGTH_MAX: usize = 64;
/// How many devices of an account are signed in at most.
pub const DEVICES_MAX: usize = 1000;
/// How many application tokens an account has at most.
pub const TOKENS_MAX: usize = 100;
/// How many links lead into a workspace at most.
pub const LINKS_MAX: usize = 1000;
/// How many people at providers of OpenID Connect are bound to an account at most.
pub const SUBJECTS_MAX: usize = 20;
/// How many invitations count at once at most.
pub const INVITATIONS_MAX: usize = 1000;
/// For how long an invitation counts at most, in seconds.
pub const INVITATION_SECONDS_MAX: i64 = 90 * 24 * 60 * 60;
/// How many workspaces an account owns at most, and of how many others it is a member.
pub const WORKSPACES_MAX: usize = 1000;
/// How many members a workspace has at most.
pub const MEMBERS_MAX: usize = 1000;
/// The longest locked keys, or box of a pairing, in bytes.
pub const KEPT_LENGTH_MAX: u64 = 512 * 1024;
/// How many boxes of pairings a workspace has at most.
pub const PAIRING_BOXES_MAX: usize = 64;
/// How many packs a commit names at most.
pub const COMMIT_PACKS_MAX: usize = 64 * 1024;
/// How many lines a list has at most.
pub const LIST_MAX: usize = 1000;
/// How many names a search looks at before others have their turn.
pub const SEARCH_STEP: usize = 16 * 1024;
/// How many searches look at names at once.
pub const SEARCHES_AT_ONCE_MAX: usize = 2;
/// How many archives accounts, and how many strangers behind links, have laid out at once: each looks at all that is in a folder.
pub const ARCHIVES_AT_ONCE_MAX: usize = 2;
/// How many records that take long to open are opened at once: for half of the cores nobody waits for photographs and documents of others.
pub fn openings_at_once_max() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}
/// How many bytes of entries one answer carries at most; the last entry may go beyond.
pub const ENTRIES_LENGTH_MAX: u64 = 3 * 1024 * 1024;
/// How many bytes of object bodies are in memory at most, of all requests of accounts together.
pub const BODIES_LENGTH_MAX: u64 = 512 * 1024 * 1024;
/// How many are beside them, of all requests of strangers behind links together.
pub const BODIES_OF_STRANGERS_LENGTH_MAX: u64 = BODIES_LENGTH_MAX / 4;
/// How many bytes of live requests are in memory at most, of all connections together.
pub const REQUESTS_LENGTH_MAX: u64 = 256 * 1024 * 1024;
/// How many requests of one live connection are worked on at once.
pub const REQUESTS_AT_ONCE_MAX: usize = 64;
/// How many frames wait for a slow live connection at most.
pub const OUTBOX_FRAMES_MAX: usize = 256;
/// How many bytes of events wait for a slow live connection at most.
pub const OUTBOX_LENGTH_MAX: usize = 32 * 1024 * 1024;
/// How many live connections an account has at most.
pub const LIVE_CONNECTIONS_MAX: usize = 256;
/// How many workspaces a live connection subscribes to at most.
pub const SUBSCRIPTIONS_MAX: usize = 1000;
/// How many passwords are checked at once; each takes 19 MiB and a core.
pub const LOGINS_AT_ONCE_MAX: usize = 2;

/// How many sign-ins are taken to their provider of OpenID Connect at once.
pub const EXCHANGES_AT_ONCE_MAX: usize = 16;

/// Of how many plain workspaces the folded view is kept.
pub const VIEWS_MAX: usize = 256;
/// About how many bytes all views take, and one at most.
pub const VIEW_WEIGHT_MAX: usize = 1024 * 1024 * 1024;
/// The longest file that is put without a device, in bytes.
pub const FILE_LENGTH_MAX: u64 = 256 * 1024 * 1024 * 1024;
/// How many chunks a version has at most against which a delta is taken.
pub const BASE_CHUNKS_MAX: usize = 1024 * 1024;
/// How many deltas of the rsync family are under way at most, and how many of one account.
pub const DELTA_SESSIONS_MAX: usize = 64;
/// How many of them one account has.
pub const DELTA_SESSIONS_OF_ACCOUNT_MAX: usize = 8;
/// How long nobody need go on with one.
pub const DELTA_SESSION_LIFE: Duration = Duration::from_secs(60);
/// How often it is looked whether a certificate was renewed.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// How many connections of those who watch the server there are at most.
pub const WATCHERS_MAX: usize = 16;

/// How long a request of the control door may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an answer of a provider of OpenID Connect may take.
pub const PROVIDER_TIMEOUT: Duration = Duration::from_secs(7);
/// How long a sign-in waits for the provider in all. It is less than [`REQUEST_TIMEOUT`], so that nothing is written for somebody who
/// has heard that it took too long.
pub const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(25);
/// For how long a provider that could not describe itself is not asked again, so that those who wait do not wait one after the other.
pub const PROVIDER_PAUSE: Duration = Duration::from_secs(5);
/// How long a request waits for memory for its body.
pub const BODY_WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a live connection is pinged from which nothing has come since.
pub const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long a live connection may be silent, not even answering pings.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one frame to a live connection may take.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an older live connection has to show that it lives when another incarnation of its device comes.
pub const LIFE_SIGN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a stop waits for what is under way.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Above this number of keys, the buckets that are full again are forgotten.
const BUCKETS_MAX: usize = 10_000;

/// How fast something may be repeated.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// How many times at once.
    pub burst: u32,
    /// After how long one more time is allowed.
    pub interval: Duration,
}

/// Attempts at one account.
pub const LOGINS_PER_ACCOUNT: Rate = Rate { burst: 10, interval: Duration::from_secs(6) };
/// Attempts from one address.
pub const LOGINS_PER_ADDRESS: Rate = Rate { burst: 50, interval: Duration::from_secs(2) };

/// Sign-ins by a provider of OpenID Connect from one address. While the provider fails they fail, and passwords are not held up.
pub const PROVIDER_LOGINS_PER_ADDRESS: Rate = Rate { burst: 50, interval: Duration::from_secs(2) };

/// Codes of the moment that are tried with the right password of an account. Three of a million fit, so who knows the password has
/// 0.07 % a day. Recovery codes do not count here: while somebody tries codes, their owner gets in by one.
pub const CODES_PER_ACCOUNT: Rate = Rate { burst: 10, interval: Duration::from_secs(360) };
/// Passwords and codes of its own account that a device tries. No other device is held up.
pub const PROOFS_PER_DEVICE: Rate = Rate { burst: 10, interval: Duration::from_secs(360) };

/// Descriptions and keys that a provider of OpenID Connect is asked for.
pub const PROVIDER_FETCHES: Rate = Rate { burst: 10, interval: Duration::from_secs(10) };

/// Passwords that are tried at a link from one address, so that whoever does not know it keeps nobody else from trying.
pub const PASSWORDS_PER_LINK_AND_ADDRESS: Rate =
    Rate { burst: 10, interval: Duration::from_secs(360) };
/// Passwords that are tried at a link from all addresses together.
pub const PASSWORDS_PER_LINK: Rate = Rate { burst: 100, interval: Duration::from_secs(36) };
/// Addresses of links that lead nowhere, from one address.
pub const DEAD_LINKS_PER_ADDRESS: Rate = Rate { burst: 50, interval: Duration::from_secs(2) };

/// Members that an account adds or changes, and links that it makes.
pub const SHARES_PER_ACCOUNT: Rate = Rate { burst: 100, interval: Duration::from_secs(2) };

/// Counts of what a workspace holds, where nothing newer is kept than what has changed since.
pub const COUNTS_PER_ACCOUNT: Rate = Rate { burst: 60, interval: Duration::from_secs(2) };

/// A token bucket per key. Time enters as the time since some fixed point.
#[derive(Debug)]
pub struct Buckets<K> {
    rate: Rate,
    /// The moment at which each bucket is full again.
    full_at: Mutex<HashMap<K, Duration>>,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Makes buckets that are all full.
    pub fn new(rate: Rate) -> Self {
        Self { rate, full_at: Mutex::default() }
    }

    /// Takes one token, or tells how long to wait for one.
    ///
    /// # Errors
    /// The time until there is a token.
    pub fn take(&self, key: K, now: Duration) -> Result<(), Duration> {
        self.take_several(key, 1, now)
    }

    /// Takes so many tokens, no more than fit into a bucket, or none and tells how long to wait for them.
    ///
    /// # Errors
    /// The time until there are so many.
    pub fn take_several(&self, key: K, count: u32, now: Duration) -> Result<(), Duration> {
        let mut buckets = self.full_at.lock();
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, full_at| *full_at > now);
        }
        let full_at = buckets.entry(key).or_insert(now);
        let next = (*full_at).max(now) + self.rate.interval * count;
        let latest = now + self.rate.interval * self.rate.burst;
        if next > latest {
            return Err(next - latest);
        }
        *full_at = next;
        Ok(())
    }

    /// Gives one token back, because what it was taken for was right.
    pub fn give_back(&self, key: &K) {
        self.give_back_several(key, 1);
    }

    /// Gives so many tokens back that were taken together.
    pub fn give_back_several(&self, key: &K, count: u32) {
        if let Some(full_at) = self.full_at.lock().get_mut(key) {
            *full_at = full_at.saturating_sub(self.rate.interval * count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, interval: Duration::from_secs(10) };

    #[test]
    fn burst_is_allowed_and_then_one_per_interval() {
        let buckets = Buckets::new(RATE);
        let mut now = Duration::from_secs(1000);
        for _ in 0..3 {
            assert_eq!(buckets.take("a", now), Ok(()));
        }
        assert_eq!(buckets.take("a", now), Err(Duration::from_secs(10)));
        assert_eq!(buckets.take("b", now), Ok(()));
        now += Duration::from_secs(10);
        assert_eq!(buckets.take("a", now), Ok(()));
        assert!(buckets.take("a", now).is_err());
    }

    #[test]
    fn several_are_taken_together_or_not_at_all() {
        let (buckets, now) = (Buckets::new(RATE), Duration::from_secs(1000));
        assert_eq!(buckets.take_several("a", 2, now), Ok(()));
        assert_eq!(buckets.take_several("a", 2, now), Err(Duration::from_secs(10)));
        assert_eq!(buckets.take("a", now), Ok(()), "none was taken");
        buckets.give_back_several(&"a", 2);
        assert_eq!(buckets.take_several("a", 2, now), Ok(()));
        assert!(buckets.take("a", now).is_err());
    }

    #[test]
    fn right_attempts_cost_nothing() {
        let buckets = Buckets::new(RATE);
        for _ in 0..100 {
            assert_eq!(buckets.take("a", Duration::ZERO), Ok(()));
            buckets.give_back(&"a");
        }
    }

    #[test]
    fn full_buckets_are_forgotten_when_there_are_many() {
        let buckets = Buckets::new(RATE);
        for key in 0..BUCKETS_MAX {
            assert_eq!(buckets.take(key, Duration::ZERO), Ok(()));
        }
        assert_eq!(buckets.take(BUCKETS_MAX, Duration::from_secs(60)), Ok(()));
        assert_eq!(buckets.full_at.lock().len(), 1);
    }
}
