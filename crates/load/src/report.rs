//! What came of the cases: tables for people, CSV, drawings.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;

use crate::figures::{Delays, Figures};
use crate::machine;
use growth::Growth;
use lab::output::Output;
use lab::plot::{Plot, Series};
use scaled::{Limit, Million, ScaledRun};

pub mod growth;
pub mod scaled;

/// From here on a part of its own lateness makes the generator the limit, in milliseconds.
const LATENESS_MAX: f64 = 10.0;

/// A server that answers less than this share of what is offered cannot follow.
const FOLLOWS_FROM: f64 = 0.98;

/// What StackSync says of Figure 7 in words: with four instances, 200 commits a second (the second of [`FIGURE_7`]) take less than 100 ms. The
/// figure itself was printed as a drawing without numbers.
const STACKSYNC: (f64, f64) = (1.0, 100.0);

/// The rates of Figure 7.
const FIGURE_7: [f64; 3] = [100.0, 200.0, 400.0];

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Which one.
    pub name: String,
    /// Commits a second that were offered, where answers did not matter.
    pub offered: Option<f64>,
    /// How many devices there were.
    pub devices: usize,
    /// For how long they sent.
    pub length: Duration,
    /// What came of it.
    pub figures: Figures,
}

/// Idle devices.
#[derive(Debug, Clone)]
pub struct Idle {
    /// How many.
    pub devices: usize,
    /// Memory of the server for each, in bytes.
    pub memory_per_device: f64,
    /// Bytes of each in a minute, both ways.
    pub bytes_per_minute: f64,
    /// The same with the headers of TCP and IP, where the kernel tells.
    pub wire_bytes_per_minute: Option<f64>,
    /// Cores that the server used.
    pub server_cores: f64,
    /// How many changes were made at once.
    pub people: usize,
    /// From the moment at which they were to be made until the last device had heard.
    pub all_heard_ms: f64,
    /// The same for the middle one.
    pub heard_p50_ms: f64,
    /// Events that were not pushed.
    pub unheard: u64,
}

/// A tenth of a second of a run.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// When it began.
    pub seconds: f64,
    /// How many commits that were to be sent in it were answered at last.
    pub answered: u64,
    /// The middle delay of their answers, in milliseconds.
    pub delay_p50: f64,
    /// The delay that one of a hundred exceeds.
    pub delay_p99: f64,
    /// The longest.
    pub delay_max: f64,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Report {
    /// Runs.
    pub runs: Vec<Run>,
    /// Idle devices.
    pub idle: Vec<Idle>,
    /// Delays over time.
    pub series: Vec<(String, Vec<Moment>)>,
    /// What the judge found.
    pub verdict: String,
    /// Requests to a server that holds ever more.
    pub growth: Vec<Growth>,
    /// Runs of gateways and sync services.
    pub scaled: Vec<ScaledRun>,
    /// What PostgreSQL itself did.
    pub limits: Vec<Limit>,
    /// Very many commits under accidents.
    pub millions: Vec<Million>,
    /// Database and brokers, and which they were.
    pub versions: Vec<(String, String)>,
    /// Whence all chance came.
    pub seed: u64,
}

impl Run {
    /// Puts a run together.
    pub fn new(
        name: String,
        offered: Option<f64>,
        devices: usize,
        length: Duration,
        figures: Figures,
    ) -> Self {
        Self { name, offered, devices, length, figures }
    }

    /// Tells whether the generator itself was too slow to say anything about the server.
    pub fn is_limited_by_generator(&self) -> bool {
        let lateness = self.figures.lateness.percentile(99.0).unwrap_or(0.0);
        lateness > LATENESS_MAX
    }

    /// Tells whether the server could follow.
    pub fn is_followed(&self) -> bool {
        let offered = self.figures.sent + self.figures.unsent;
        let in_time = self.figures.answered_per_second * self.length.as_secs_f64();
        in_time >= FOLLOWS_FROM * offered as f64
    }

    /// Tells the figures in some lines.
    pub fn describe(&self) -> String {
        let figures = &self.figures;
        let of = |delays: &Delays, percent| delays.percentile(percent).unwrap_or(f64::NAN);
        let offered = self.offered.map_or_else(|| "all it can".to_owned(), |rate| rate.to_string());
        let others = figures.other_events.percentile(99.0);
        let others = others.map_or_else(String::new, |ms| format!("; others' p99 {ms:.2} ms"));
        // Where processes come and go, what they cost is not known.
        let server = match figures.parts.is_empty() {
            true => String::new(),
            false => format!(
                "server {:.2} cores ({:.0} us each), ",
                figures.server_cores, figures.server_cpu_each
            ),
        };
        let mut text = format!(
            "  {} devices, {offered} commits/s offered: {:.0} answered/s\n  \
             answer p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms; own event p50 {:.2} ms, p99 {:.2} ms{others}\n  \
             {server}generator {:.2} cores ({:.0} us each), its lateness p99 {:.2} ms, its lag p99 {:.2} ms; \
             others on the host had {:.2} cores",
            self.devices,
            figures.answered_per_second,
            of(&figures.answers, 50.0),
            of(&figures.answers, 99.0),
            figures.answers.longest().unwrap_or(f64::NAN),
            of(&figures.own_events, 50.0),
            of(&figures.own_events, 99.0),
            figures.generator_cores,
            figures.generator_cpu_each,
            of(&figures.lateness, 99.0),
            of(&figures.lags, 99.0),
            figures.stolen_cores,
        );
        for (what, count) in [
            ("not answered", figures.sent - figures.answered),
            ("not even sent", figures.unsent),
            ("events not pushed", figures.unheard),
            ("times a device asked for a missing event", figures.gaps),
            ("refused", figures.refused),
            ("sent again because nobody could answer", figures.repeated),
            ("connections lost", figures.losses),
            ("answers that contradict their event", figures.contradictions),
        ] {
            if count > 0 {
                // Writing to a String cannot fail.
                let _ok = write!(text, "\n  {count} {what}");
            }
        }
        if self.offered.is_some() && !self.is_followed() {
            text.push_str("\n  the server could not follow");
        }
        if self.is_limited_by_generator() {
            text.push_str("\n  the generator woke up late: it, or the machine, was the limit");
        }
        text
    }
}

impl Idle {
    /// Tells the figures in some lines.
    pub fn describe(&self) -> String {
        let wire = self.wire_bytes_per_minute;
        let wire = wire.map_or_else(|| "unknown".to_owned(), |bytes| format!("{bytes:.0}"));
        format!(
            "  {} idle devices: {:.1} KiB of memory each, {:.0} bytes a minute each ({wire} with the headers of TCP), \
             server {:.3} cores\n  {} changes at once reached the middle device after {:.1} ms, the last one after {:.1} ms; {} events not pushed",
            self.devices,
            self.memory_per_device / 1024.0,
            self.bytes_per_minute,
            self.server_cores,
            self.people,
            self.heard_p50_ms,
            self.all_heard_ms,
            self.unheard,
        )
    }
}

impl Report {
    /// Begins without figures.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Writes CSV and drawings.
    ///
    /// # Errors
    /// Where files cannot be written.
    pub fn write(&self, output: &Output) -> Result<()> {
        output.write_csv("runs", &self.runs_csv())?;
        for run in &self.runs {
            output.write_csv(&format!("delays-{}", run.name), &delays_csv(&run.figures))?;
        }
        if !self.idle.is_empty() {
            output.write_csv("idle", &self.idle_csv())?;
        }
        for (name, moments) in &self.series {
            output.write_csv(&format!("time-{name}"), &moments_csv(moments))?;
            output.write_svg(name, &over_time(name, moments))?;
        }
        if self.runs.iter().any(|run| run.name.starts_with("rate-")) {
            output.write_svg("delay-over-rate", &self.over_rate())?;
            output.write_svg("figure-7", &self.figure_7())?;
        }
        self.write_growth(output)?;
        self.write_scaled(output)
    }

    fn runs_csv(&self) -> String {
        let mut text = String::from(
            "run,devices,offered_per_second,seconds,sent,unsent,answered,answered_per_second,\
             answer_p50_ms,answer_p90_ms,answer_p99_ms,answer_p999_ms,answer_max_ms,\
             own_event_p50_ms,own_event_p99_ms,other_event_p50_ms,other_event_p99_ms,\
             last_event_p50_ms,last_event_p99_ms,unheard,gaps,refused,losses,contradictions,\
             server_cores,generator_cores,server_cpu_us_each,generator_cpu_us_each,lateness_p99_ms,lag_p99_ms,stolen_cores,cores\n",
        );
        for run in &self.runs {
            let figures = &run.figures;
            let of = |delays: &Delays, percent| column_ms(delays.percentile(percent));
            let max = column_ms(figures.answers.longest());
            let columns = [
                run.name.clone(),
                run.devices.to_string(),
                run.offered.map_or_else(String::new, |rate| rate.to_string()),
                run.length.as_secs_f64().to_string(),
                figures.sent.to_string(),
                figures.unsent.to_string(),
                figures.answered.to_string(),
                format!("{:.1}", figures.answered_per_second),
                of(&figures.answers, 50.0),
                of(&figures.answers, 90.0),
                of(&figures.answers, 99.0),
                of(&figures.answers, 99.9),
                max,
                of(&figures.own_events, 50.0),
                of(&figures.own_events, 99.0),
                of(&figures.other_events, 50.0),
                of(&figures.other_events, 99.0),
                of(&figures.last_events, 50.0),
                of(&figures.last_events, 99.0),
                figures.unheard.to_string(),
                figures.gaps.to_string(),
                figures.refused.to_string(),
                figures.losses.to_string(),
                figures.contradictions.to_string(),
                format!("{:.3}", figures.server_cores),
                format!("{:.3}", figures.generator_cores),
                format!("{:.1}", figures.server_cpu_each),
                format!("{:.1}", figures.generator_cpu_each),
                of(&figures.lateness, 99.0),
                of(&figures.lags, 99.0),
                format!("{:.3}", figures.stolen_cores),
                machine::cores().to_string(),
            ];
            text.push_str(&columns.join(","));
            text.push('\n');
        }
        text
    }

    fn idle_csv(&self) -> String {
        let mut text = String::from(
            "devices,memory_bytes_each,bytes_per_minute_each,wire_bytes_per_minute_each,\
             server_cores,changes,heard_p50_ms,all_heard_ms,unheard\n",
        );
        for idle in &self.idle {
            let wire = idle.wire_bytes_per_minute;
            let wire = wire.map_or_else(String::new, |bytes| format!("{bytes:.1}"));
            let _ok = writeln!(
                text,
                "{},{:.0},{:.1},{wire},{:.4},{},{:.2},{:.2},{}",
                idle.devices,
                idle.memory_per_device,
                idle.bytes_per_minute,
                idle.server_cores,
                idle.people,
                idle.heard_p50_ms,
                idle.all_heard_ms,
                idle.unheard
            );
        }
        text
    }

    /// Draws delays over what was offered; runs that the server could not follow end each line.
    fn over_rate(&self) -> String {
        let line = |name: &str, delays: fn(&Figures) -> &Delays, percent: f64| {
            let points = self.runs.iter().filter_map(|run| {
                Some((run.offered?, delays(&run.figures).percentile(percent)?))
                    .filter(|_| run.name.starts_with("rate-"))
            });
            Series::ours(name, points.collect())
        };
        let plot = Plot {
            title: "A commit from its intended moment of sending".to_owned(),
            across: "commits offered a second".to_owned(),
            up: "milliseconds".to_owned(),
            series: vec![
                line("event at the sender, p50", |figures| &figures.own_events, 50.0),
                line("event at the sender, p99", |figures| &figures.own_events, 99.0),
                line("event at the sender, p99.9", |figures| &figures.own_events, 99.9),
                line("event at another, p99", |figures| &figures.other_events, 99.0),
            ],
        };
        plot.lines_over_magnitudes()
    }

    /// Draws Figure 7 of the paper with ours.
    fn figure_7(&self) -> String {
        let bars = |name: &str, percent: f64| {
            let points = FIGURE_7.iter().zip(0u32..).filter_map(|(rate, group)| {
                let mut runs = self.runs.iter().filter(|run| run.name.starts_with("rate-"));
                let run = runs.find(|run| run.offered == Some(*rate))?;
                Some((f64::from(group), run.figures.own_events.percentile(percent)?))
            });
            Series::ours(name, points.collect())
        };
        let plot = Plot {
            title: "StackSync's Figure 7: from the request to its event".to_owned(),
            across: "commits offered a second".to_owned(),
            up: "milliseconds".to_owned(),
            series: vec![
                bars("ours, embedded, p50", 50.0),
                bars("ours, embedded, p99", 99.0),
                Series::published("StackSync's limit, 4 services", vec![STACKSYNC]),
            ],
        };
        plot.bars(&FIGURE_7.map(|rate| rate.to_string()))
    }
}

fn delays_csv(figures: &Figures) -> String {
    let mut text = String::from("what,microseconds,count\n");
    for (what, delays) in [
        ("answer", &figures.answers),
        ("own_event", &figures.own_events),
        ("other_event", &figures.other_events),
        ("last_event", &figures.last_events),
        ("lag", &figures.lags),
        ("lateness", &figures.lateness),
    ] {
        for (microseconds, count) in delays.steps() {
            let _ok = writeln!(text, "{what},{microseconds},{count}");
        }
    }
    text
}

fn moments_csv(moments: &[Moment]) -> String {
    let mut text = String::from("seconds,answered,p50_ms,p99_ms,max_ms\n");
    for moment in moments {
        let Moment { seconds, answered, delay_p50, delay_p99, delay_max } = moment;
        let _ok =
            writeln!(text, "{seconds:.1},{answered},{delay_p50:.3},{delay_p99:.3},{delay_max:.3}");
    }
    text
}

fn over_time(name: &str, moments: &[Moment]) -> String {
    let line = |title: &str, delay: fn(&Moment) -> f64| {
        Series::ours(title, moments.iter().map(|moment| (moment.seconds, delay(moment))).collect())
    };
    let plot = Plot {
        title: format!("Answers around a disturbance: {name}"),
        across: "seconds, by the moment at which a commit was to be sent".to_owned(),
        up: "milliseconds".to_owned(),
        series: vec![
            line("p50", |moment| moment.delay_p50),
            line("p99", |moment| moment.delay_p99),
            line("max", |moment| moment.delay_max),
        ],
    };
    plot.lines()
}

/// Writes milliseconds into a column; nothing where there are none.
fn column_ms(ms: Option<f64>) -> String {
    ms.map_or_else(String::new, |ms| format!("{ms:.3}"))
}
