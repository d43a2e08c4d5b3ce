//! What came of the cases of gateways and sync services.

use std::fmt::Write;

use anyhow::Result;

use super::{FIGURE_7, Report, Run, STACKSYNC, column_ms};
use crate::cluster::{BROKERS, DOORS, Shape, WORKERS};
use crate::figures::{Delays, Figures};
use crate::machine;
use lab::output::Output;
use lab::plot::{Plot, Series};

/// A run of gateways and sync services.
#[derive(Debug, Clone)]
pub struct ScaledRun {
    /// How many there were.
    pub shape: Shape,
    /// How many commits shared a transaction, on average.
    pub group_size: f64,
    /// The run.
    pub run: Run,
}

/// What PostgreSQL itself did.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Which transactions.
    pub script: &'static str,
    /// How many clients at once.
    pub clients: usize,
    /// How many commits each transaction stands for.
    pub group: usize,
    /// How many transactions ended in a second.
    pub transactions_per_second: f64,
    /// How long one took on average, in milliseconds.
    pub latency_ms: f64,
}

impl Limit {
    /// Begins without figures.
    pub fn new(script: &'static str, clients: usize, group: usize) -> Self {
        Self { script, clients, group, transactions_per_second: 0.0, latency_ms: 0.0 }
    }

    /// Returns how many commits a second that would be.
    pub fn commits_per_second(&self) -> f64 {
        self.transactions_per_second * self.group as f64
    }

    /// Tells the figures in a line.
    pub fn describe(&self) -> String {
        format!(
            "  {}, {} clients, groups of {}: {:.0} transactions/s, {:.0} commits/s, {:.2} ms each",
            self.script,
            self.clients,
            self.group,
            self.transactions_per_second,
            self.commits_per_second(),
            self.latency_ms
        )
    }
}

/// Very many commits under accidents.
#[derive(Debug, Clone)]
pub struct Million {
    /// Who served them.
    pub shape: Shape,
    /// How many commits were sent.
    pub sent: u64,
    /// How many were answered.
    pub answered: u64,
    /// How many were refused for good.
    pub refused: u64,
    /// How many times one was sent again because nobody could answer it just then.
    pub repeated: u64,
    /// How many connections were lost.
    pub losses: u64,
    /// How many accidents there were.
    pub accidents: u64,
    /// How many commits the judge found to be known to their devices.
    pub known: u64,
    /// How many things the judge found wrong.
    pub violations: usize,
    /// From the first commit to the last answer.
    pub seconds: f64,
    /// The longest time from a commit to its answer, repetitions included.
    pub longest_ms: f64,
}

impl Million {
    /// Tells the figures in a line.
    pub fn describe(&self) -> String {
        format!(
            "  {}: {} commits in {:.0} s under {} accidents; {} answered, {} refused, {} repeated, {} connections lost, \
             longest answer {:.1} s; {} violations",
            self.shape.broker,
            self.sent,
            self.seconds,
            self.accidents,
            self.answered,
            self.refused,
            self.repeated,
            self.losses,
            self.longest_ms / 1000.0,
            self.violations
        )
    }
}

impl Report {
    pub(super) fn write_scaled(&self, output: &Output) -> Result<()> {
        if !self.limits.is_empty() {
            output.write_csv("limit", &self.limits_csv())?;
        }
        if !self.millions.is_empty() {
            output.write_csv("million", &self.millions_csv())?;
        }
        if self.scaled.is_empty() {
            return Ok(());
        }
        output.write_csv("scaled", &self.scaled_csv())?;
        for broker in BROKERS.into_iter().filter(|broker| self.runs_at(broker).next().is_some()) {
            output.write_svg(&format!("figure-7-{broker}"), &self.figure_7_at(broker))?;
            output.write_svg(&format!("delay-over-rate-{broker}"), &self.over_rate_at(broker))?;
        }
        Ok(output.write_svg("scaled-saturation", &self.saturation())?)
    }

    fn runs_at<'a>(&'a self, broker: &'a str) -> impl Iterator<Item = &'a ScaledRun> {
        self.scaled.iter().filter(move |one| one.shape.broker == broker)
    }

    fn version(&self, service: &str) -> String {
        let found = self.versions.iter().find(|(name, _)| name == service);
        found.map_or_else(String::new, |(_, version)| version.replace(',', ";"))
    }

    fn scaled_csv(&self) -> String {
        let mut text = String::from(
            "run,broker,gateways,sync_services,offered_per_second,seconds,sent,unsent,answered,answered_per_second,\
             own_event_p50_ms,own_event_p99_ms,answer_p50_ms,answer_p99_ms,other_event_p99_ms,refused,losses,\
             commits_in_a_transaction,gateway_cores,sync_service_cores,database_cores,broker_cores,generator_cores,\
             lateness_p99_ms,follows,stolen_cores,cores,seed,database_version,broker_version\n",
        );
        for ScaledRun { shape, group_size, run } in &self.scaled {
            let figures = &run.figures;
            let of = |delays: &Delays, percent| column_ms(delays.percentile(percent));
            let part = |name: &str| {
                let found = figures.parts.iter().find(|(part, _)| *part == name);
                found.map_or_else(String::new, |(_, cores)| format!("{cores:.3}"))
            };
            let columns = [
                run.name.clone(),
                shape.broker.to_owned(),
                shape.gateways.to_string(),
                shape.sync_services.to_string(),
                run.offered.map_or_else(String::new, |rate| rate.to_string()),
                run.length.as_secs_f64().to_string(),
                figures.sent.to_string(),
                figures.unsent.to_string(),
                figures.answered.to_string(),
                format!("{:.1}", figures.answered_per_second),
                of(&figures.own_events, 50.0),
                of(&figures.own_events, 99.0),
                of(&figures.answers, 50.0),
                of(&figures.answers, 99.0),
                of(&figures.other_events, 99.0),
                figures.refused.to_string(),
                figures.losses.to_string(),
                format!("{group_size:.2}"),
                part(DOORS),
                part(WORKERS),
                part("database"),
                part("broker"),
                format!("{:.3}", figures.generator_cores),
                of(&figures.lateness, 99.0),
                run.offered.map_or_else(String::new, |_| run.is_followed().to_string()),
                format!("{:.3}", figures.stolen_cores),
                machine::cores().to_string(),
                self.seed.to_string(),
                self.version(crate::cluster::DATABASE),
                self.version(shape.broker),
            ];
            text.push_str(&columns.join(","));
            text.push('\n');
        }
        text
    }

    fn limits_csv(&self) -> String {
        let mut text = String::from(
            "script,clients,commits_in_a_transaction,transactions_per_second,commits_per_second,latency_ms,cores,seed,\
             database_version\n",
        );
        let (cores, seed) = (machine::cores(), self.seed);
        for limit in &self.limits {
            let _ok = writeln!(
                text,
                "{},{},{},{:.1},{:.1},{:.3},{cores},{seed},{}",
                limit.script,
                limit.clients,
                limit.group,
                limit.transactions_per_second,
                limit.commits_per_second(),
                limit.latency_ms,
                self.version(crate::cluster::DATABASE)
            );
        }
        text
    }

    fn millions_csv(&self) -> String {
        let mut text = String::from(
            "broker,gateways,sync_services,sent,answered,refused,repeated,losses,accidents,known,violations,seconds,\
             longest_answer_ms,cores,seed,database_version,broker_version\n",
        );
        for one in &self.millions {
            let Shape { broker, gateways, sync_services } = one.shape;
            let _ok = writeln!(
                text,
                "{broker},{gateways},{sync_services},{},{},{},{},{},{},{},{},{:.1},{:.1},{},{},{},{}",
                one.sent,
                one.answered,
                one.refused,
                one.repeated,
                one.losses,
                one.accidents,
                one.known,
                one.violations,
                one.seconds,
                one.longest_ms,
                machine::cores(),
                self.seed,
                self.version(crate::cluster::DATABASE),
                self.version(broker)
            );
        }
        text
    }

    /// Draws Figure 7 of the paper with ours over this broker.
    fn figure_7_at(&self, broker: &str) -> String {
        let bars = |sync_services: usize, percent: f64| {
            let points = FIGURE_7.iter().zip(0u32..).filter_map(|(rate, group)| {
                let mut runs = self.runs_at(broker).filter(|one| one.run.offered == Some(*rate));
                let one = runs.find(|one| one.shape.sync_services == sync_services)?;
                Some((f64::from(group), one.run.figures.own_events.percentile(percent)?))
            });
            let services = if sync_services == 1 { "service" } else { "services" };
            Series::ours(format!("{sync_services} {services}, p{percent}"), points.collect())
        };
        let mut series = Vec::new();
        for sync_services in self.numbers_of_services() {
            series.extend([bars(sync_services, 50.0), bars(sync_services, 99.0)]);
        }
        series.push(Series::published("StackSync's limit, 4 services", vec![STACKSYNC]));
        let plot = Plot {
            title: format!(
                "StackSync's Figure 7, PostgreSQL and {broker}: from the request to its event"
            ),
            across: "commits offered a second".to_owned(),
            up: "milliseconds".to_owned(),
            series,
        };
        plot.bars(&FIGURE_7.map(|rate| rate.to_string()))
    }

    fn numbers_of_services(&self) -> Vec<usize> {
        let mut numbers: Vec<_> = self.scaled.iter().map(|one| one.shape.sync_services).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Draws delays over what was offered.
    fn over_rate_at(&self, broker: &str) -> String {
        let line = |sync_services: usize, percent: f64| {
            let delays = |figures: &Figures| figures.own_events.percentile(percent);
            let runs = self.runs_at(broker).filter(|one| one.shape.sync_services == sync_services);
            let points = runs.filter_map(|one| Some((one.run.offered?, delays(&one.run.figures)?)));
            Series::ours(format!("{sync_services} sync services, p{percent}"), points.collect())
        };
        let numbers = self.numbers_of_services();
        let series = numbers.iter().flat_map(|number| [line(*number, 50.0), line(*number, 99.0)]);
        let plot = Plot {
            title: format!(
                "A commit over PostgreSQL and {broker}, until its event is at the sender"
            ),
            across: "commits offered a second".to_owned(),
            up: "milliseconds".to_owned(),
            series: series.collect(),
        };
        plot.lines_over_magnitudes()
    }

    /// Draws how many commits there were at saturation, beside what PostgreSQL itself did.
    fn saturation(&self) -> String {
        let numbers = self.numbers_of_services();
        let place = |number: usize| numbers.iter().position(|one| *one == number).map(|n| n as f64);
        let mut series: Vec<_> = BROKERS
            .into_iter()
            .map(|broker| {
                let runs = self.runs_at(broker).filter(|one| one.run.offered.is_none());
                let points = runs.filter_map(|one| {
                    Some((place(one.shape.sync_services)?, one.run.figures.answered_per_second))
                });
                Series::ours(broker, points.collect())
            })
            .collect();
        let mut groups: Vec<_> = self.limits.iter().map(|limit| limit.group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups.into_iter().filter(|group| *group > 1) {
            let of_group = self.limits.iter().filter(|limit| limit.group == group);
            let points = of_group
                .filter_map(|limit| Some((place(limit.clients)?, limit.commits_per_second())));
            series.push(Series::ours(format!("pgbench, groups of {group}"), points.collect()));
        }
        let plot = Plot {
            title: "As much as they can, and as PostgreSQL can".to_owned(),
            across: "sync services, or clients of pgbench".to_owned(),
            up: "commits a second".to_owned(),
            series,
        };
        plot.bars(&numbers.iter().map(ToString::to_string).collect::<Vec<_>>())
    }
}
