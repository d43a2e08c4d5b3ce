//! Cleanups that nobody asks for: when one is due, and by which time versions are old.
//!
//! *Participants*: every device that keeps watch. *Goals*: what nobody needs goes within weeks, with no more than one look at the log in
//! a period; one clock that is wrong makes nothing look old. *Non-goals*: that only one device cleans up: two at once are safe, and
//! one of them has worked in vain; so that it is rare, each looks at a moment of the hour of its own. *Invariants*: those of
//! a cleanup that was asked for; no version goes before somebody has said which are kept.
//!
//! All times are those of the log: what its newest entries say, never what only the clock of this device says. In a workspace in
//! which nothing happens nothing grows old.

use std::collections::HashMap;
use std::time::Duration;

use model::DeviceId;
use model::version_policy::VersionPolicy;

use super::{CleanupOptions, CleanupReport, Survey, Worth};
use crate::engine::{Engine, Event};
use crate::error::{Result, SyncError};

/// The fact that says how late it was by the log when this device last looked whether a cleanup is worth it.
const LOOKED: &str = "cleanup looked";

/// How many of the newest entries tell how late it is.
const ENTRIES: u64 = 256;

/// How many times in a period is looked whether it has passed: once an hour of a week.
const LOOKS: u32 = 168;

/// When a device cleans up by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutomaticCleanup {
    /// How much time must have passed since the last cleanup, by whomever.
    pub period: Duration,
    /// What it must be good for.
    pub worth: Worth,
    /// How many bytes of packs are written anew at most.
    pub repack_length_max: u64,
}

impl Default for AutomaticCleanup {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(7 * 24 * 3600),
            worth: Worth::default(),
            repack_length_max: 64 * 1024 * 1024,
        }
    }
}

impl AutomaticCleanup {
    /// Returns how long to wait from one look to the next.
    pub fn look_after(&self) -> Duration {
        self.period / LOOKS
    }

    /// Returns when in the first quarter of that time a device looks: others do at another moment.
    fn moment_of(&self, device: &DeviceId) -> Duration {
        let (first, _) = device.as_bytes().split_at(4);
        let number = u32::from_le_bytes(first.try_into().expect("an id is longer than a number"));
        let part = f64::from(number) / f64::from(u32::MAX);
        self.look_after().mul_f64(part / 4.0)
    }
}

/// What an engine does about cleanups while it keeps watch.
#[derive(Debug)]
pub(in crate::engine) struct CleanupLookout {
    options: AutomaticCleanup,
    next: Duration,
}

impl Engine {
    /// Tells by [`Event::CleanupDue`] after a run of [`Self::sync`] that it is time for [`Self::clean_up_by_itself`]; not before
    /// a moment of the clock.
    pub fn look_out_for_cleanups(&mut self, options: AutomaticCleanup, not_before: Duration) {
        let moment = options.moment_of(&self.options.device);
        let next = not_before.max(self.environment.clock.elapsed() + moment);
        self.cleanup_lookout = Some(CleanupLookout { options, next });
    }

    /// Tells that a cleanup is due, if it is.
    pub(in crate::engine) fn tell_whether_cleanup_is_due(&mut self) -> Result<()> {
        let now = self.environment.clock.elapsed();
        let Some(lookout) = self.cleanup_lookout.as_mut().filter(|it| it.next <= now) else {
            return Ok(());
        };
        let options = lookout.options;
        lookout.next = now + options.look_after();
        if self.is_cleanup_due(&options)? {
            (self.observer)(Event::CleanupDue);
        }
        Ok(())
    }

    /// Tells whether so much time has passed since the last fence, and since this device has looked, or has come to the workspace.
    pub(super) fn is_cleanup_due(&mut self, options: &AutomaticCleanup) -> Result<bool> {
        let Some(now_s) = self.log_time_s()? else { return Ok(false) };
        let looked_s = self.state.fact(LOOKED)?.and_then(|bytes| bytes.try_into().ok());
        let looked_s = match looked_s.map(i64::from_le_bytes) {
            // What is later than now was said by a clock that is put right.
            Some(looked_s) if looked_s <= now_s => looked_s,
            _ => {
                self.note_look(now_s)?;
                now_s
            }
        };
        let fence = self.state.entry(self.state.last_fence()?)?;
        let fence_s = fence.map_or(i64::MIN, |entry| self.clock_of(&entry).1);
        let last_s = looked_s.max(fence_s.min(now_s));
        Ok(now_s.saturating_sub(last_s).unsigned_abs() >= options.period.as_secs())
    }

    fn note_look(&mut self, now_s: i64) -> Result<()> {
        self.state.set_fact(LOOKED, &now_s.to_le_bytes())
    }

    /// Cleans up if it is worth it, by the time of the log and by the policy that somebody has set for the workspace; every
    /// version is kept where nobody has. May be cut off anywhere; then it is due again.
    ///
    /// # Errors
    /// As [`Self::cleanup`].
    pub async fn clean_up_by_itself(
        &mut self,
        options: &AutomaticCleanup,
    ) -> Result<CleanupReport> {
        let (set_at, _) = self.version_policy()?;
        let options = CleanupOptions {
            policy: (set_at == 0).then(VersionPolicy::everything),
            worth: Some(options.worth),
            is_by_log_time: true,
            repack_length_max: options.repack_length_max,
            ..CleanupOptions::default()
        };
        let done = self.cleanup(&options).await;
        // What is missing in the log or the stores is not there a moment later.
        let has_looked = matches!(done, Ok(_) | Err(SyncError::NotWhole(_)));
        if let Some(now_s) = self.log_time_s()?.filter(|_| has_looked) {
            self.note_look(now_s)?;
        }
        done
    }

    /// Returns how late it is by the newest entries of the log, in seconds: of what the devices say that wrote them the second
    /// latest, unless there is one only; and never later than here. Nothing where there is no entry.
    pub(super) fn log_time_s(&self) -> Result<Option<i64>> {
        let head = self.head()?.seq;
        let mut latest: HashMap<DeviceId, i64> = HashMap::new();
        for seq in head.saturating_sub(ENTRIES) + 1..=head {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let (device, clock_s) = self.clock_of(&entry);
            latest
                .entry(device)
                .and_modify(|known| *known = clock_s.max(*known))
                .or_insert(clock_s);
        }
        let mut times: Vec<i64> = latest.into_values().collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        let said = times.get(1).or(times.first());
        Ok(said.map(|said| self.environment.clock.now().seconds.min(*said)))
    }

    /// Returns who wrote an entry, and how late it was there.
    fn clock_of(&self, entry: &model::Entry) -> (DeviceId, i64) {
        let (_, clock) = self.keys.commit_header(&entry.commit).unwrap_or_default();
        (entry.commit.device, clock.seconds)
    }

    /// Tells whether what was found is worth a cleanup.
    pub(super) fn is_worth(&self, worth: &Worth, survey: &Survey) -> Result<bool> {
        let (_, stored) = self.state.stored_packs_count()?;
        let anew = survey.anew.freed_length().saturating_sub(survey.anew.length);
        let freed = survey.condemned_objects().map(|(_, length)| length).sum::<u64>() + anew;
        Ok(freed >= worth.length
            && freed.saturating_mul(100) >= stored.saturating_mul(worth.percent))
    }
}
