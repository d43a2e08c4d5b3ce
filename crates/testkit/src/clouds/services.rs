//! How fast five cloud services were in 2015, and what follows for a single request.
//!
//! MetaSync 2015, Table 4, gives for each service, from two places, how many bytes a second went up and down when files
//! of 1 KB, 1 MB, 10 MB and 100 MB were moved one at a time. A quotient of size and bandwidth is a time, so the table is
//! sixteen times a service, and from them we take:
//!
//! * **Latency**: the time of 1 KB. A request without a body, and one that fails, takes that.
//! * **Rate**: the largest size divided by its time beyond the latency, mostly that of 100 MB ("the bandwidth of each
//!   service approaches its limit at 100 MB"). All requests of one device to one service in one direction share it.
//! * **Alone**: what the body of a request takes with nothing beside it, by straight lines between the four times. It is
//!   longer than body by rate, since a transfer needs a while to get up to speed; that is why several at once help.
//!
//! So a request that is alone takes exactly the time of Table 4. Where the table's rounding makes a larger file faster
//! than a smaller one (OneDrive from China), the larger one takes as long as the smaller.

use std::time::Duration;

/// The sizes of Table 4, in bytes.
const SIZES: [u64; 4] = [1_000, 1_000_000, 10_000_000, 100_000_000];

/// From where a service is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// A campus in the United States.
    UnitedStates,
    /// A campus in China.
    China,
}

/// One direction of a service: what moving bytes one way takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Direction {
    /// Seconds for each of [`SIZES`].
    seconds: [f64; 4],
}

impl Direction {
    /// Takes the bandwidths of Table 4: KB/s for the first, MB/s for the others.
    fn from_table([kilobytes, megabytes @ ..]: [f64; 4]) -> Self {
        let mut seconds = [1.0 / kilobytes, 0.0, 0.0, 0.0];
        for (index, rate) in megabytes.iter().enumerate() {
            let time = SIZES[index + 1] as f64 / 1e6 / rate;
            seconds[index + 1] = time.max(seconds[index]);
        }
        Self { seconds }
    }

    /// A direction of a fixed latency and rate, in bytes a second, that is as fast from the first byte.
    pub fn steady(latency: Duration, rate: f64) -> Self {
        let first = latency.as_secs_f64();
        Self { seconds: SIZES.map(|size| first + (size - SIZES[0]) as f64 / rate) }
    }

    /// Returns what a request without a body takes.
    pub fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.seconds[0])
    }

    /// Returns how many bytes a second all requests together get through.
    pub fn rate(&self) -> f64 {
        let rates = (1..SIZES.len()).map(|index| {
            (SIZES[index] - SIZES[0]) as f64 / (self.seconds[index] - self.seconds[0])
        });
        rates.fold(0.0, f64::max)
    }

    /// Returns what a body takes beyond the latency, with nothing beside it.
    pub fn alone(&self, size: u64) -> Duration {
        let beyond = size.saturating_sub(SIZES[0]) as f64;
        let mut seconds = 0.0;
        for index in 1..SIZES.len() {
            let (from, to) =
                ((SIZES[index - 1] - SIZES[0]) as f64, (SIZES[index] - SIZES[0]) as f64);
            let is_last = index + 1 == SIZES.len();
            let part = if is_last { beyond - from } else { beyond.min(to) - from };
            let pace = (self.seconds[index] - self.seconds[index - 1]) / (to - from);
            seconds += part.max(0.0) * pace;
        }
        Duration::from_secs_f64(seconds)
    }
}

/// A cloud service as one device reaches it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// What people call it.
    pub name: &'static str,
    /// What puts take.
    pub up: Direction,
    /// What reads take.
    pub down: Direction,
    /// How many requests of a device are under way at once; others wait for their turn.
    pub connections: usize,
}

/// How many connections a device opens to a service: what browsers and most libraries open to one host.
const CONNECTIONS: usize = 8;

/// Name, and bandwidths up and down, from the United States and from China.
type Row = (&'static str, [[f64; 4]; 2], Option<[[f64; 4]; 2]>);

/// MetaSync 2015, Table 4. In China Google did not answer.
const TABLE_4: [Row; 5] = [
    (
        "Baidu",
        [[0.7, 0.21, 0.22, 0.24], [0.8, 0.22, 0.94, 1.07]],
        Some([[1.8, 0.12, 0.13, 0.13], [2.6, 1.48, 2.64, 3.38]]),
    ),
    (
        "Box",
        [[1.4, 0.73, 4.79, 17.37], [0.6, 0.44, 3.38, 15.77]],
        Some([[0.8, 0.11, 0.13, 0.13], [0.2, 0.12, 0.68, 1.08]]),
    ),
    (
        "Dropbox",
        [[1.2, 0.59, 2.50, 3.86], [1.3, 0.69, 3.48, 14.81]],
        Some([[0.5, 0.10, 0.09, 0.13], [0.5, 0.20, 0.41, 0.68]]),
    ),
    ("Google", [[1.4, 1.00, 5.80, 9.43], [0.8, 0.77, 5.50, 26.90]], None),
    (
        "OneDrive",
        [[0.8, 0.45, 3.13, 7.89], [0.5, 0.34, 2.08, 6.33]],
        Some([[0.3, 0.01, 0.11, 0.11], [0.1, 0.05, 0.12, 0.44]]),
    ),
];

/// Returns the services of Table 4 that answered in a region, in the order of their names.
pub fn table_4(region: Region) -> Vec<Service> {
    let rows = TABLE_4.iter().filter_map(|(name, states, china)| {
        let [up, down] = match region {
            Region::UnitedStates => Some(*states),
            Region::China => *china,
        }?;
        let (up, down) = (Direction::from_table(up), Direction::from_table(down));
        Some(Service { name, up, down, connections: CONNECTIONS })
    });
    rows.collect()
}

/// Returns three services with the rates that MetaSync's clone had from each of them alone (Figure 10: 193 MB in 40 to
/// 70 s, of which the text names 5.1 MB/s for Dropbox and 3.4 MB/s for Google), and the latencies of Table 4.
pub fn figure_10() -> Vec<Service> {
    let rates = [("Dropbox", 5.1e6), ("Google", 3.4e6), ("OneDrive", 193e6 / 70.0)];
    let table = table_4(Region::UnitedStates);
    let of = |name: &str, rate: f64| {
        let service = table.iter().find(|service| service.name == name)?;
        let down = Direction::steady(service.down.latency(), rate);
        Some(Service { down, ..*service })
    };
    rates.iter().filter_map(|(name, rate)| of(name, *rate)).collect()
}

/// Returns a service that takes no time but a round trip on this machine.
pub fn loopback(name: &'static str) -> Service {
    let direction = Direction::steady(Duration::from_micros(100), 1e9);
    Service { name, up: direction, down: direction, connections: CONNECTIONS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Service> {
        [table_4(Region::UnitedStates), table_4(Region::China)].concat()
    }

    #[test]
    fn request_alone_takes_the_time_of_the_table() {
        let services = table_4(Region::UnitedStates);
        let seconds = |index: usize, size: u64| {
            let up = services[index].up;
            (up.latency() + up.alone(size)).as_secs_f64()
        };
        // Box: 1 KB at 1.4 KB/s, 1 MB at 0.73 MB/s, 10 MB at 4.79 MB/s, 100 MB at 17.37 MB/s.
        for (size, expected) in
            [(1_000, 0.714), (1_000_000, 1.370), (10_000_000, 2.088), (100_000_000, 5.757)]
        {
            assert!((seconds(1, size) - expected).abs() < 0.002, "{size}: {}", seconds(1, size));
        }
        // Between two sizes the time is between the two.
        assert!((1.370..2.088).contains(&seconds(1, 4 << 20)));
    }

    #[test]
    fn nothing_moves_faster_than_the_rate() {
        for service in all() {
            for direction in [service.up, service.down] {
                for size in [2_000, 500_000, 4 << 20, 10_000_000, 64 << 20, 100_000_000] {
                    let moved = (size - SIZES[0]) as f64 / direction.alone(size).as_secs_f64();
                    assert!(moved <= direction.rate() * 1.001, "{} {size}", service.name);
                }
            }
        }
    }

    #[test]
    fn larger_bodies_never_take_less() {
        for service in all() {
            let sizes = (0..200).map(|step| step * 1_000_003);
            let times: Vec<_> = sizes.map(|size| service.up.alone(size)).collect();
            assert!(times.is_sorted(), "{}", service.name);
        }
    }

    #[test]
    fn google_is_missing_in_china() {
        let names: Vec<_> = table_4(Region::China).iter().map(|service| service.name).collect();
        assert_eq!(names, ["Baidu", "Box", "Dropbox", "OneDrive"]);
    }
}
