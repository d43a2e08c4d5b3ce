//! The sync services of a supervisor: started, started again with a growing pause when they die, asked to end.
//!
//! *Invariant*: it starts nothing and ends nothing by itself; processes enter as an argument.

use std::io;
use std::time::Duration;

use crate::metrics::Counter;

/// The pauses before one that has died is started again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Who lives as long has not failed at its start.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// How long one that was asked to end may take; then it is killed.
const LEAVING_MAX: Duration = Duration::from_secs(30);

/// Starts sync services.
pub trait Workshop: Send {
    /// Starts the one with this number; those that run at once have different ones.
    ///
    /// # Errors
    /// Where the system starts none.
    fn start(&mut self, number: usize) -> io::Result<Box<dyn Instance>>;
}

/// A sync service that was started.
pub trait Instance: Send {
    /// Returns how it ended, once it has.
    fn ended(&mut self) -> Option<String>;

    /// Asks it to end in good order.
    fn ask_to_end(&mut self);

    /// Ends it at once.
    fn kill(&mut self);
}

/// What has happened to them so far.
#[derive(Debug, Default)]
pub struct Events {
    /// How many were started.
    pub starts: Counter,
    /// How many ended without having been asked.
    pub deaths: Counter,
}

/// Where one works.
struct Place {
    number: usize,
    running: Option<(Box<dyn Instance>, Duration)>,
    failures: u32,
    start_at: Duration,
}

/// All of them.
pub struct Crew {
    workshop: Box<dyn Workshop>,
    places: Vec<Place>,
    leaving: Vec<(usize, Box<dyn Instance>, Duration)>,
    events: Events,
}

impl Crew {
    /// Begins with none.
    pub fn new(workshop: Box<dyn Workshop>) -> Self {
        Self { workshop, places: Vec::new(), leaving: Vec::new(), events: Events::default() }
    }

    /// Returns how many run, and how many were asked to end and have not yet.
    pub fn count(&self) -> (usize, usize) {
        (self.places.iter().filter(|place| place.running.is_some()).count(), self.leaving.len())
    }

    /// Returns what has happened so far.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Looks after those who run, and sees to it that there are as many as wanted.
    pub fn tend(&mut self, now: Duration, wanted: usize) {
        self.bury(now);
        while self.places.len() > wanted {
            let place = self.places.pop().expect("there are more than wanted");
            if let Some((mut instance, _)) = place.running {
                tracing::info!(number = place.number, "a sync service is taken away");
                instance.ask_to_end();
                self.leaving.push((place.number, instance, now + LEAVING_MAX));
            }
        }
        while self.places.len() < wanted {
            let number = self.free_number();
            self.places.push(Place { number, running: None, failures: 0, start_at: now });
        }
        for place in &mut self.places {
            if place.running.is_none() && now >= place.start_at {
                match self.workshop.start(place.number) {
                    Ok(instance) => {
                        tracing::info!(number = place.number, "a sync service is started");
                        self.events.starts.add(1);
                        place.running = Some((instance, now));
                    }
                    Err(error) => {
                        tracing::error!(number = place.number, %error, "a sync service cannot be started");
                        place.fail(now);
                    }
                }
            }
        }
    }

    /// Asks all to end.
    pub fn dismiss(&mut self, now: Duration) {
        self.tend(now, 0);
    }

    /// Tells whether nobody is left; those who take too long are killed.
    pub fn is_gone(&mut self, now: Duration) -> bool {
        self.bury(now);
        self.places.is_empty() && self.leaving.is_empty()
    }

    /// Takes those off the list who have ended.
    fn bury(&mut self, now: Duration) {
        for place in &mut self.places {
            let Some((instance, since)) = &mut place.running else { continue };
            let Some(how) = instance.ended() else { continue };
            if now.saturating_sub(*since) >= HEALTHY_AFTER {
                place.failures = 0;
            }
            place.fail(now);
            let pause_ms = place.start_at.saturating_sub(now).as_millis();
            tracing::warn!(number = place.number, how, pause_ms, "a sync service has died");
            self.events.deaths.add(1);
            place.running = None;
        }
        self.leaving.retain_mut(|(number, instance, until)| {
            if now >= *until {
                tracing::warn!(number, "a sync service does not end, and is killed");
                instance.kill();
            }
            instance.ended().is_none()
        });
    }

    fn free_number(&self) -> usize {
        let is_taken = |number: usize| {
            self.places.iter().any(|place| place.number == number)
                || self.leaving.iter().any(|leaving| leaving.0 == number)
        };
        (1..).find(|number| !is_taken(*number)).expect("numbers do not end")
    }
}

impl Place {
    fn fail(&mut self, now: Duration) {
        let pause = PAUSES.0 * 2_u32.saturating_pow(self.failures);
        self.start_at = now + pause.min(PAUSES.1);
        self.failures = self.failures.saturating_add(1).min(16);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// What becomes of instances, as a test wants it.
    #[derive(Default)]
    struct Fate {
        started: Vec<usize>,
        asked: Vec<usize>,
        killed: Vec<usize>,
        dead: Vec<usize>,
        cannot_start: bool,
    }

    struct Shop(Arc<Mutex<Fate>>);
    struct One(usize, Arc<Mutex<Fate>>);

    impl Workshop for Shop {
        fn start(&mut self, number: usize) -> io::Result<Box<dyn Instance>> {
            let mut fate = self.0.lock();
            if fate.cannot_start {
                return Err(io::Error::other("no processes are left"));
            }
            fate.started.push(number);
            fate.dead.retain(|dead| *dead != number);
            Ok(Box::new(One(number, Arc::clone(&self.0))))
        }
    }

    impl Instance for One {
        fn ended(&mut self) -> Option<String> {
            self.1.lock().dead.contains(&self.0).then(|| "signal 9".to_owned())
        }

        fn ask_to_end(&mut self) {
            self.1.lock().asked.push(self.0);
        }

        fn kill(&mut self) {
            let mut fate = self.1.lock();
            fate.killed.push(self.0);
            fate.dead.push(self.0);
        }
    }

    fn crew() -> (Crew, Arc<Mutex<Fate>>) {
        let fate = Arc::<Mutex<Fate>>::default();
        (Crew::new(Box::new(Shop(Arc::clone(&fate)))), fate)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn as_many_run_as_are_wanted_and_the_last_ones_leave() {
        let (mut crew, fate) = crew();
        crew.tend(seconds(0), 3);
        assert_eq!((crew.count(), &*fate.lock().started), ((3, 0), &[1, 2, 3][..]));
        crew.tend(seconds(1), 1);
        assert_eq!((crew.count(), &*fate.lock().asked), ((1, 2), &[3, 2][..]));
        // One that leaves still has its folder.
        crew.tend(seconds(2), 2);
        assert_eq!(fate.lock().started.last(), Some(&4));
        fate.lock().dead.extend([2, 3]);
        crew.tend(seconds(3), 3);
        assert_eq!((crew.count(), fate.lock().started.last()), ((3, 0), Some(&2)));
        assert_eq!(crew.events().deaths.get(), 0, "who was asked to end has not died");
    }

    #[test]
    fn one_that_dies_is_started_again_with_growing_pauses() {
        let (mut crew, fate) = crew();
        let mut starts = Vec::new();
        for second in 0..100 {
            crew.tend(seconds(second), 1);
            let mut fate = fate.lock();
            if !fate.started.is_empty() {
                fate.started.clear();
                fate.dead.push(1);
                starts.push(second);
            }
        }
        // It is seen a second later that one has died.
        assert_eq!(starts, [0, 2, 5, 10, 19, 36, 67, 98]);
        assert_eq!(crew.events().deaths.get(), 8);
    }

    #[test]
    fn one_that_has_lived_long_is_started_again_soon() {
        let (mut crew, fate) = crew();
        for second in [0, 1, 3, 4, 7] {
            crew.tend(seconds(second), 1);
            fate.lock().dead.push(1);
        }
        crew.tend(seconds(8), 1);
        crew.tend(seconds(20), 1);
        crew.tend(seconds(200), 1);
        fate.lock().dead.push(1);
        crew.tend(seconds(201), 1);
        fate.lock().started.clear();
        crew.tend(seconds(202), 1);
        assert_eq!(fate.lock().started, [1]);
    }

    #[test]
    fn a_system_that_starts_none_is_asked_again() {
        let (mut crew, fate) = crew();
        fate.lock().cannot_start = true;
        crew.tend(seconds(0), 2);
        assert_eq!(crew.count(), (0, 0));
        fate.lock().cannot_start = false;
        crew.tend(seconds(1), 2);
        assert_eq!(crew.count(), (2, 0));
    }

    #[test]
    fn at_the_end_all_are_asked_and_those_who_stay_are_killed() {
        let (mut crew, fate) = crew();
        crew.tend(seconds(0), 2);
        crew.dismiss(seconds(1));
        fate.lock().dead.push(1);
        assert!(!crew.is_gone(seconds(2)));
        assert!(crew.is_gone(seconds(31)));
        let fate = fate.lock();
        assert_eq!((&*fate.asked, &*fate.killed), (&[2, 1][..], &[2][..]));
    }
}
