//! What came of the case in which a server holds ever more.

use std::fmt::Write;

use anyhow::Result;

use super::{Report, column_ms};
use crate::figures::Delays;
use lab::output::Output;
use lab::plot::{Plot, Series};

/// What there is ever more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Files in the workspace in which is asked.
    Files,
    /// Workspaces of others.
    Workspaces,
    /// As many files as there were at last, while devices commit in other workspaces.
    FilesMeanwhile,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Workspaces => "workspaces",
            Self::FilesMeanwhile => "files, commits meanwhile",
        }
    }
}

/// One kind of request at one size.
#[derive(Debug, Clone)]
pub struct Growth {
    /// What there is more of.
    pub of: Of,
    /// How much of it there is.
    pub total: u64,
    /// What is asked.
    pub request: &'static str,
    /// From the question to the answer.
    pub delays: Delays,
    /// Memory of the server afterwards, in bytes.
    pub resident_bytes: u64,
}

impl Growth {
    /// Tells the figures in a line.
    pub fn describe(&self) -> String {
        let of = |percent| self.delays.percentile(percent).unwrap_or(f64::NAN);
        format!(
            "  {} {}: {}: p50 {:.2} ms, p99 {:.2} ms; server {} MiB",
            self.total,
            self.of.name(),
            self.request,
            of(50.0),
            of(99.0),
            self.resident_bytes >> 20
        )
    }
}

impl Report {
    pub(super) fn write_growth(&self, output: &Output) -> Result<()> {
        if self.growth.is_empty() {
            return Ok(());
        }
        output.write_csv("growth", &self.growth_csv())?;
        output.write_svg("growth-files", &self.growth_over(Of::Files))?;
        Ok(output.write_svg("growth-workspaces", &self.growth_over(Of::Workspaces))?)
    }

    fn growth_csv(&self) -> String {
        let mut text = String::from("of,total,request,times,p50_ms,p99_ms,max_ms,resident_bytes\n");
        for Growth { of, total, request, delays, resident_bytes } in &self.growth {
            let column = |percent| column_ms(delays.percentile(percent));
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "\"{}\",{total},{request},{},{},{},{},{resident_bytes}",
                of.name(),
                delays.count(),
                column(50.0),
                column(99.0),
                column_ms(delays.longest()),
            );
        }
        text
    }

    /// Draws the middle delay of each request over how much there is.
    fn growth_over(&self, of: Of) -> String {
        let rows = || self.growth.iter().filter(|one| one.of == of);
        let mut requests: Vec<&str> = Vec::new();
        for row in rows() {
            if !requests.contains(&row.request) {
                requests.push(row.request);
            }
        }
        let line = |request: &&str| {
            let rows = rows().filter(|row| row.request == *request);
            let points =
                rows.filter_map(|row| Some((row.total as f64, row.delays.percentile(50.0)?)));
            Series::ours(*request, points.collect())
        };
        let plot = Plot {
            title: format!("One request after the other, p50, over {}", of.name()),
            across: of.name().to_owned(),
            up: "milliseconds".to_owned(),
            series: requests.iter().map(line).collect(),
        };
        plot.lines_over_magnitudes()
    }
}
