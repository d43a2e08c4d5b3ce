//! The text that Prometheus reads (exposition format 0.0.4).
//!
//! Every metric has one line that says what it is, and its name says its unit. [`NAMES`] lists all of them; a test compares the
//! dashboard of `packaging` with it.

use std::fmt::Write as _;

use super::{Counter, Door, Groups, Histogram, Metrics, STATUS_CLASSES};

/// The type of the answer.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The names of all metrics.
pub const NAMES: [&str; 18] = [
    "syncline_requests_total",
    "syncline_commits_total",
    "syncline_commit_seconds",
    "syncline_group_size",
    "syncline_writer_queue",
    "syncline_events_total",
    "syncline_event_queue",
    "syncline_live_connections",
    "syncline_subscriptions",
    "syncline_object_bytes_total",
    "syncline_faults_total",
    "syncline_logins_refused_total",
    "syncline_accounts",
    "syncline_device_sync_age_seconds",
    "syncline_broker_messages_total",
    "syncline_broker_reachable",
    "syncline_ready",
    "syncline_uptime_seconds",
];

/// What is not counted but asked when somebody wants to know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Now {
    /// Requests that wait for the writer.
    pub writer_queue: u64,
    /// Entries that wait to be told.
    pub event_queue: u64,
    /// Live connections.
    pub live_connections: u64,
    /// Workspaces that somebody has subscribed to.
    pub subscriptions: u64,
    /// Accounts.
    pub accounts: u64,
    /// The devices that were fully in sync the longest time ago, the longest first.
    pub sync_ages: Vec<DeviceAge>,
    /// Bulletins of servers and signs of life of sync services that the broker has carried here, and whether it carries anything;
    /// nothing where there is no broker.
    pub broker: Option<(u64, u64, bool)>,
    /// Whether everything answers that the server stands on.
    pub is_ready: bool,
    /// How long it runs, in seconds.
    pub uptime_seconds: u64,
}

/// How long ago a device was last fully in sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceAge {
    /// The name of its account.
    pub account: String,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How long ago, in seconds.
    pub seconds: u64,
}

/// What the parts of a server have counted by themselves.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The doors.
    pub metrics: &'a Metrics,
    /// The writer.
    pub groups: &'a Groups,
    /// Events that went into an outbox.
    pub events_sent: &'a Counter,
    /// Events that were left out.
    pub events_left_out: &'a Counter,
}

/// Writes everything down.
pub fn write(parts: Parts<'_>, now: &Now) -> String {
    let Parts { metrics, groups, .. } = parts;
    let mut page = Page::default();
    page.head("syncline_requests_total", "counter", "Requests by door and class of status.");
    for ((_, door), classes) in Door::ALL.iter().zip(&metrics.requests) {
        for (class, counter) in (1..=STATUS_CLASSES).zip(classes) {
            let labels = format!("door=\"{door}\",status=\"{class}xx\"");
            page.line("syncline_requests_total", &labels, counter.get());
        }
    }
    page.by(
        ("syncline_commits_total", "Commits by what became of them."),
        "outcome",
        [
            ("appended", metrics.commits_appended.get()),
            ("repeated", metrics.commits_repeated.get()),
            ("refused", metrics.commits_refused.get()),
        ],
    );
    let times = "From a commit that came in to its answer, where it was appended.";
    page.histogram("syncline_commit_seconds", times, &metrics.commit_times, 1_000_000.0);
    let sizes = "Requests that were written in one transaction.";
    page.histogram("syncline_group_size", sizes, &groups.0, 1.0);
    page.gauge("syncline_writer_queue", "Requests that wait for the writer.", now.writer_queue);
    page.by(
        ("syncline_events_total", "Events for live connections by what became of them."),
        "outcome",
        [("sent", parts.events_sent.get()), ("left_out", parts.events_left_out.get())],
    );
    page.gauge("syncline_event_queue", "Entries that wait to be told.", now.event_queue);
    page.gauge("syncline_live_connections", "Live connections.", now.live_connections);
    let subscriptions = "Workspaces that somebody has subscribed to.";
    page.gauge("syncline_subscriptions", subscriptions, now.subscriptions);
    page.by(
        ("syncline_object_bytes_total", "Bytes of packs and pages by direction."),
        "direction",
        [("in", metrics.object_bytes_in.get()), ("out", metrics.object_bytes_out.get())],
    );
    page.by(
        ("syncline_faults_total", "Requests that failed at the database or the store."),
        "part",
        [("database", metrics.database_errors.get()), ("store", metrics.store_errors.get())],
    );
    let refused =
        "Sign-ins that were refused, and passwords and codes of devices that came too often.";
    page.head("syncline_logins_refused_total", "counter", refused);
    page.line("syncline_logins_refused_total", "", metrics.logins_refused.get());
    page.gauge("syncline_accounts", "Accounts.", now.accounts);
    let ages =
        "Seconds since the device was last fully in sync; only the devices with the longest.";
    page.head("syncline_device_sync_age_seconds", "gauge", ages);
    for DeviceAge { account, id, name, seconds } in &now.sync_ages {
        let (account, name) = (escape(account), escape(name));
        let labels = format!("account=\"{account}\",device=\"{id}\",name=\"{name}\"");
        page.line("syncline_device_sync_age_seconds", &labels, *seconds);
    }
    let (bulletins, signs, is_reachable) = now.broker.unwrap_or_default();
    page.by(
        ("syncline_broker_messages_total", "Messages of servers that the broker has carried here."),
        "kind",
        [("bulletin", bulletins), ("sign", signs)],
    );
    let reachable = "1 where a broker carries messages, 0 where it does not or there is none.";
    page.gauge("syncline_broker_reachable", reachable, u64::from(is_reachable));
    let ready = "1 where everything answers that the server stands on.";
    page.gauge("syncline_ready", ready, u64::from(now.is_ready));
    page.gauge("syncline_uptime_seconds", "How long the server runs.", now.uptime_seconds);
    page.0
}

/// A page that is being written.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// Returns the whole page.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// Says what a metric is; its lines follow.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a number, with labels where there are any.
    pub(crate) fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    /// Writes a metric of one value that may be a fraction, or beyond all numbers.
    pub(crate) fn value(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        let _ = match value.is_finite() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name} +Inf"),
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        self.line(name, "", value);
    }

    fn by<const N: usize>(
        &mut self,
        (name, help): (&str, &str),
        label: &str,
        values: [(&str, u64); N],
    ) {
        self.head(name, "counter", help);
        for (value, count) in values {
            self.line(name, &format!("{label}=\"{value}\""), count);
        }
    }

    /// Writes a histogram; values are divided by `unit`.
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram, unit: f64) {
        self.head(name, "histogram", help);
        let mut count = 0;
        for (bound, counter) in histogram.bounds.iter().zip(&histogram.counts) {
            count += counter.get();
            let labels = format!("le=\"{}\"", *bound as f64 / unit);
            self.line(&format!("{name}_bucket"), &labels, count);
        }
        count += histogram.counts.last().map_or(0, Counter::get);
        self.line(&format!("{name}_bucket"), "le=\"+Inf\"", count);
        let _ = writeln!(self.0, "{name}_sum {}", histogram.sum.get() as f64 / unit);
        self.line(&format!("{name}_count"), "", count);
    }
}

/// Writes the value of a label as the format wants it.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_metric_is_written_once_with_its_kind_and_numbers() {
        let (metrics, groups) = (Metrics::default(), Groups::default());
        metrics.request(Door::Packs, 201);
        metrics.commit_times.note_time(Duration::from_millis(2));
        groups.0.note(3);
        let (sent, left_out) = (Counter::default(), Counter::default());
        let parts = Parts {
            metrics: &metrics,
            groups: &groups,
            events_sent: &sent,
            events_left_out: &left_out,
        };
        let now = Now {
            sync_ages: vec![DeviceAge {
                account: "ada".to_owned(),
                name: "a\"d\\a".to_owned(),
                seconds: 7,
                ..DeviceAge::default()
            }],
            broker: Some((4, 5, true)),
            is_ready: true,
            ..Now::default()
        };
        let text = write(parts, &now);
        let kinds: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let named: BTreeSet<&str> =
            kinds.iter().map(|kind| kind.split(' ').next().unwrap()).collect();
        assert_eq!((named.len(), named), (kinds.len(), BTreeSet::from(NAMES)));
        for line in [
            "syncline_requests_total{door=\"packs\",status=\"2xx\"} 1",
            "syncline_commit_seconds_bucket{le=\"0.001\"} 0",
            "syncline_commit_seconds_bucket{le=\"0.0025\"} 1",
            "syncline_commit_seconds_sum 0.002",
            "syncline_broker_messages_total{kind=\"sign\"} 5",
            "syncline_broker_reachable 1",
            "syncline_group_size_bucket{le=\"4\"} 1",
            "syncline_group_size_count 1",
            "syncline_device_sync_age_seconds{account=\"ada\",device=\"\",name=\"a\\\"d\\\\a\"} 7",
            "syncline_ready 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
