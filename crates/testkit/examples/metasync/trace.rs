//! Every request of a run as a bar over time, store by store: shows when which line is idle, and who waits for whom.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use storage::faulty::Operation;
use testkit::clouds::folders::{Transfer, clone_at_rest, send_and_receive};
use testkit::clouds::requests::Request;
use testkit::clouds::services::Service;
use testkit::clouds::workloads::photos;

use crate::folders::{Setting, clone_settings, settings, workload};
use lab::output::{Output, say};
use lab::plot::{COLOURS, escape, label};

/// How wide a drawing is, where its bars begin, and how high one of them is, in pixels.
const WIDTH: f64 = 1500.0;
const LEFT: f64 = 90.0;
const BAR: f64 = 6.0;

/// What a request is for, as the drawings tell apart, in the order of their colours.
const KINDS: [&str; 6] =
    ["pack or block read", "part read", "pack or block written", "log", "other", ""];

/// Runs one setting once, and draws and lists its requests.
pub(crate) fn run(
    folder: Option<String>,
    setting: &str,
    seed: u64,
    output: &Output,
) -> Result<(), Box<dyn Error>> {
    let known = match folder {
        None => clone_settings(),
        Some(_) => settings(),
    };
    let found = known.iter().find(|(name, ..)| name == setting);
    let Some((name, services, redundancy)): Option<&Setting> = found else {
        let names: Vec<_> = known.iter().map(|(name, ..)| name.as_str()).collect();
        return Err(format!("no setting '{setting}', but {}", names.join("; ")).into());
    };
    let transfers: Vec<(&str, Transfer)> = match &folder {
        None => vec![("clone", clone_at_rest(services, *redundancy, &photos(seed), seed)?)],
        Some(folder) => {
            let both = send_and_receive(services, *redundancy, &workload(folder, seed), seed)?;
            ["send", "receive"].into_iter().zip(both).collect()
        }
    };
    for (way, transfer) in transfers {
        let title = format!("{} {name} {way}", folder.as_deref().unwrap_or("photos"));
        let file = format!("trace-{}", title.replace([' ', ',', '='], "-"));
        say(&format!("{title}: {:.2} s", transfer.took.as_secs_f64()));
        let trace = Trace::new(&transfer);
        trace.summarise(services);
        output.write_csv(&file, &trace.csv())?;
        output.write_svg(&file, &trace.svg(&title))?;
    }
    Ok(())
}

/// The requests of a run, with times from its beginning.
struct Trace<'a> {
    requests: Vec<&'a Request>,
    began: Duration,
    took: Duration,
}

impl<'a> Trace<'a> {
    fn new(transfer: &'a Transfer) -> Self {
        let requests: Vec<_> = transfer.requests.iter().collect();
        Self { requests, began: transfer.began, took: transfer.took }
    }

    fn seconds(&self, at: Option<Duration>) -> f64 {
        at.map_or(self.took, |at| at.saturating_sub(self.began)).as_secs_f64()
    }

    /// Says of each store how much it moved, and which part of what its rates allow in that time.
    fn summarise(&self, services: &[Service]) {
        for service in services {
            let own = || self.requests.iter().filter(|request| request.store == service.name);
            let sent: u64 = own().map(|request| request.sent).sum();
            let received: u64 = own().map(|request| request.received).sum();
            let part = |bytes: u64, rate: f64| bytes as f64 / rate / self.took.as_secs_f64();
            say(&format!(
                "  {:9} {:4} requests, up {:6.1} MB ({:.2} of its rate), down {:6.1} MB ({:.2})",
                service.name,
                own().count(),
                sent as f64 / 1e6,
                part(sent, service.up.rate()),
                received as f64 / 1e6,
                part(received, service.down.rate()),
            ));
        }
    }

    fn csv(&self) -> String {
        let mut text =
            "store,operation,key,asked_s,connected_s,answered_s,sent,received\n".to_owned();
        for request in &self.requests {
            let at = |at: Option<Duration>| match at {
                Some(_) => format!("{:.3}", self.seconds(at)),
                None => String::new(),
            };
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "{},{:?},{},{},{},{},{},{}",
                request.store,
                request.operation,
                request.key,
                at(Some(request.asked)),
                at(request.connected),
                at(request.answered),
                request.sent,
                request.received
            );
        }
        text
    }

    /// Draws the requests of each store in as few rows as they need.
    fn svg(&self, title: &str) -> String {
        let mut by_store: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
        for request in &self.requests {
            by_store.entry(request.store).or_default().push(request);
        }
        let mut body = String::new();
        let mut top = 60.0;
        for (store, requests) in by_store {
            let mut ends: Vec<f64> = Vec::new();
            label(&mut body, 8.0, top + 10.0, "start", store);
            for request in requests {
                let from = self.seconds(Some(request.asked));
                let to = self.seconds(request.answered);
                let row = ends.iter().position(|end| *end <= from).unwrap_or(ends.len());
                ends.resize(ends.len().max(row + 1), 0.0);
                ends[row] = to;
                self.bar(&mut body, request, top + row as f64 * BAR);
            }
            top += ends.len() as f64 * BAR + 24.0;
        }
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{WIDTH}\" height=\"{top}\" fill=\"white\"/>\n"
        );
        label(
            &mut text,
            LEFT,
            16.0,
            "start",
            &format!("{title}, {:.1} s", self.took.as_secs_f64()),
        );
        for (number, kind) in KINDS.iter().enumerate().filter(|(_, kind)| !kind.is_empty()) {
            let (x, colour) = (LEFT + 330.0 + 150.0 * number as f64, COLOURS[number]);
            let _ok = writeln!(
                text,
                "<rect x=\"{x}\" y=\"8\" width=\"10\" height=\"8\" fill=\"{colour}\"/>"
            );
            label(&mut text, x + 14.0, 16.0, "start", kind);
        }
        for second in 0..=self.took.as_secs() {
            let x = self.x(second as f64);
            let _ok = writeln!(
                text,
                "<line x1=\"{x:.1}\" y1=\"36\" x2=\"{x:.1}\" y2=\"{top}\" stroke=\"#dddddd\"/>"
            );
            if second % (1 + self.took.as_secs() / 30) == 0 {
                label(&mut text, x, 32.0, "middle", &second.to_string());
            }
        }
        text + &body + "</svg>\n"
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.took.as_secs_f64().max(1e-9) * (WIDTH - LEFT - 20.0)
    }

    /// Draws one request, pale while it waits for a connection; what was not answered has no end.
    fn bar(&self, text: &mut String, request: &Request, y: f64) {
        let colour = COLOURS[kind(request)];
        let (asked, connected) =
            (self.seconds(Some(request.asked)), self.seconds(request.connected));
        let answered = self.seconds(request.answered);
        let title = format!(
            "{:?} {} {:.2} to {answered:.2} s, {} up, {} down",
            request.operation, request.key, asked, request.sent, request.received
        );
        for (from, to, opacity) in [(asked, connected, 0.25), (connected, answered, 1.0)] {
            let opacity = if request.answered.is_none() { 0.15 } else { opacity };
            let (x, width) = (self.x(from), (self.x(to) - self.x(from)).max(0.0));
            let height = BAR - 1.0;
            let _ok = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" \
                 fill=\"{colour}\" opacity=\"{opacity}\"><title>{}</title></rect>",
                escape(&title)
            );
        }
    }
}

fn kind(request: &Request) -> usize {
    let is_content = request.key.starts_with("packs/") || request.key.starts_with("blocks/");
    match request.operation {
        Operation::Get if is_content => 0,
        Operation::GetRange if is_content => 1,
        Operation::Put | Operation::PutDeferred if is_content => 2,
        _ if request.key.starts_with("log/") => 3,
        _ => 4,
    }
}
