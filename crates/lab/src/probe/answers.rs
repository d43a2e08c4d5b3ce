//! What follows from the counts of a probe. Every answer says from which numbers.

use serde::{Deserialize, Serialize};

use super::{Findings, Row, Step, Subject};

/// What share of bytes by chance has to go over the wire if all of it is looked at: nothing makes them fewer.
const YARDSTICK_SHARE: f64 = 0.95;

/// What share of a file may go over the wire if the program has known that it was there.
const SMALL_SHARE: f64 = 0.1;

/// What share of a file may go over the wire if only parts of it have.
const PARTS_SHARE: f64 = 0.5;

/// What share of what bytes by chance take a text may take if it is compressed.
const COMPRESSED_SHARE: f64 = 0.9;

/// So few turns for a file say that several go together.
const BUNDLED: f64 = 0.5;

/// An answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was asked.
    pub feature: String,
    /// In a few words, for a table.
    pub answer: String,
    /// What it follows from.
    pub evidence: String,
}

/// Answers all questions, always in the same order.
pub fn answers(subject: &Subject, findings: &Findings) -> Vec<Answer> {
    let rows = Rows(&findings.rows);
    let fault = fault(findings);
    let by_bytes = |answer: fn(Rows<'_>) -> (String, String)| match &fault {
        None => answer(rows),
        Some(fault) => not_known(fault.clone()),
    };
    let answers: [(&str, (String, String)); 17] = [
        ("Encrypted on the wire", on_the_wire(rows)),
        ("Contents readable where they are stored", stored(findings, true)),
        ("Names readable where they are stored", stored(findings, false)),
        ("Compression", by_bytes(compression)),
        ("Deduplication", by_bytes(deduplication)),
        ("Deduplication with what was removed", by_bytes(again)),
        ("Deduplication across accounts", by_bytes(across_accounts)),
        ("Renaming moves the content again", by_bytes(renaming)),
        ("Delta encoding", by_bytes(delta)),
        ("Chunking", by_bytes(chunking)),
        ("Bundling", by_bytes(bundling)),
        ("Traffic of bytes by chance", by_bytes(|rows| traffic(rows, Step::Large))),
        ("Traffic of files half alike", by_bytes(|rows| traffic(rows, Step::Halves))),
        ("Traffic of a file that grows", by_bytes(|rows| traffic(rows, Step::Growing))),
        ("Ready after", readiness(rows)),
        ("Loss under load", loss(subject, rows)),
        ("Says by itself", idle(rows)),
    ];
    let answer = |(feature, (answer, evidence)): (&str, (String, String))| Answer {
        feature: feature.to_owned(),
        answer,
        evidence,
    };
    answers.into_iter().map(answer).collect()
}

/// Says why the counted bytes tell nothing, if they do not.
fn fault(findings: &Findings) -> Option<String> {
    if findings.missed > 0 {
        return Some(format!("{} packets were not counted", findings.missed));
    }
    let Some(large) = Rows(&findings.rows).middle(Step::Large) else {
        return Some("a large file never came where it belongs".to_owned());
    };
    let is_whole = large.counts.most() as f64 >= large.bytes as f64 * YARDSTICK_SHARE;
    let what = || {
        format!(
            "of bytes by chance, which nothing makes fewer, {} came and {} went over the wire: some of it goes over ports that nobody has named",
            bytes(large.bytes),
            bytes(large.counts.most())
        )
    };
    (!is_whole).then(what)
}

/// What cannot be said, and why.
pub(super) fn not_known(why: impl Into<String>) -> (String, String) {
    ("not known".to_owned(), why.into())
}

#[derive(Clone, Copy)]
struct Rows<'a>(&'a [Row]);

impl<'a> Rows<'a> {
    /// Returns the only row of a step, or the middle one by what went over the wire. A step of which something never came tells nothing.
    fn middle(self, step: Step) -> Option<&'a Row> {
        let mut of_it: Vec<&Row> =
            self.0.iter().filter(|row| row.step == step && row.missing == 0).collect();
        of_it.sort_by_key(|row| row.counts.most());
        of_it.get(of_it.len() / 2).copied()
    }

    /// What a small file takes, in bytes: what any change costs.
    fn overhead(self) -> u64 {
        self.middle(Step::Small).map_or(0, |row| row.counts.most())
    }

    /// Returns a row, and which share of its bytes went over the wire, without what any change costs.
    fn share(self, step: Step) -> Option<(&'a Row, f64)> {
        let row = self.middle(step)?;
        let moved = row.counts.most().saturating_sub(self.overhead());
        Some((row, moved as f64 / row.bytes.max(1) as f64))
    }
}

/// Says what a step has moved.
fn moved(row: &Row) -> String {
    let what = match row.step {
        Step::Idle => "nothing",
        Step::Small => "a file of 1 KiB",
        Step::Large => "a file of bytes by chance",
        Step::Text => "a text",
        Step::Copy => "the same file again",
        Step::Shifted => "the same with one byte in front",
        Step::Twins => "two equal files at once",
        Step::Rename => "another name",
        Step::OneByte => "one byte changed",
        Step::Insert => "1 KiB put in front",
        Step::Append => "1 KiB put behind",
        Step::Elsewhere => "the same file of another account",
        Step::Remove => "a removed file",
        Step::Again => "a removed file again",
        Step::Halves => "files at once of which one half is the same",
        Step::Growing => "a file to which 1 KiB was added again and again",
        Step::Bundle | Step::Load => "small files",
        Step::Secret => "a marked file",
    };
    format!("{what}: {} of {}", bytes(row.counts.most()), bytes(row.bytes))
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

fn on_the_wire(rows: Rows<'_>) -> (String, String) {
    let sum = |of: fn(&Row) -> u64| rows.0.iter().map(of).sum::<u64>();
    let (tls, ssh, plain) =
        (sum(|row| row.counts.tls), sum(|row| row.counts.ssh), sum(|row| row.counts.plain));
    let seen = |mark: usize| rows.0.iter().any(|row| row.counts.seen.get(mark) == Some(&true));
    let in_the_clear = match (seen(0), seen(1)) {
        (true, true) => "content and name of a marked file went by in the clear",
        (true, false) => "the content of a marked file went by in the clear",
        (false, true) => "the name of a marked file went by in the clear",
        (false, false) => "neither content nor name of a marked file went by in the clear",
    };
    let begun = format!("connections: {tls} of TLS, {ssh} of SSH, {plain} of neither");
    let evidence = format!("{in_the_clear}; {begun}");
    let answer = match (seen(0) || seen(1), tls, ssh, plain) {
        (true, ..) => "no",
        _ if rows.middle(Step::Secret).is_none() => return not_known(evidence),
        (_, 1.., 0, 0) => "yes, TLS",
        (_, 0, 1.., 0) => "yes, SSH",
        (_, 1.., 1.., 0) => "yes, TLS and SSH",
        // What is said may be encrypted, or its bytes are other ones; connections may be older than the probe.
        _ => "nothing readable",
    };
    (answer.to_owned(), evidence)
}

fn stored(findings: &Findings, content: bool) -> (String, String) {
    let Some(stored) = findings.stored else {
        return not_known("nobody said where the server keeps what it gets");
    };
    let (what, found) = if content { ("content", stored.content) } else { ("name", stored.name) };
    let unread = match stored.unread {
        0 => String::new(),
        unread => format!(", and {unread} could not be read"),
    };
    let place = format!("in {} stored files{unread}", stored.files);
    if Rows(&findings.rows).middle(Step::Secret).is_none() {
        return not_known("the marked file never came where it belongs");
    }
    if found {
        ("yes".to_owned(), format!("the {what} of a marked file was found {place}"))
    } else if stored.files == 0 || stored.unread > 0 {
        not_known(format!("the {what} of a marked file was not found {place}"))
    } else {
        ("no".to_owned(), format!("the {what} of a marked file was not found as it is {place}"))
    }
}

fn compression(rows: Rows<'_>) -> (String, String) {
    let (Some((text, of_text)), Some((large, of_large))) =
        (rows.share(Step::Text), rows.share(Step::Large))
    else {
        return not_known("a large file never came where it belongs");
    };
    let evidence = format!("{}; {}", moved(text), moved(large));
    let answer = if of_text < of_large * COMPRESSED_SHARE {
        format!("yes, text {:.1} to 1", 1.0 / of_text.max(1e-6))
    } else {
        "no".to_owned()
    };
    (answer, evidence)
}

fn deduplication(rows: Rows<'_>) -> (String, String) {
    let [copy, shifted, twins] =
        [Step::Copy, Step::Shifted, Step::Twins].map(|step| rows.share(step));
    let Some((copied, share)) = copy else {
        return not_known("the copy of a file never came where it belongs");
    };
    let mut evidence = vec![moved(copied)];
    evidence.extend([shifted, twins].into_iter().flatten().map(|(row, _)| moved(row)));
    let answer = match shifted {
        _ if share >= SMALL_SHARE => "no",
        Some((_, shifted)) if shifted < PARTS_SHARE => "yes, parts at any place of a file",
        _ => "yes, whole files or parts at fixed places",
    };
    (answer.to_owned(), evidence.join("; "))
}

fn again(rows: Rows<'_>) -> (String, String) {
    match rows.share(Step::Again) {
        None => not_known("a removed file never came again"),
        Some((row, share)) => (yes(share < SMALL_SHARE), moved(row)),
    }
}

fn across_accounts(rows: Rows<'_>) -> (String, String) {
    match rows.share(Step::Elsewhere) {
        None => not_known(
            "nobody named the folder of another account, or nothing went over the wire for it",
        ),
        Some((row, share)) => (yes(share < SMALL_SHARE), moved(row)),
    }
}

fn renaming(rows: Rows<'_>) -> (String, String) {
    match rows.share(Step::Rename) {
        None => not_known("a renamed file never came where it belongs"),
        // A text that is compressed is small, too: what it took before is what it is compared with.
        Some((row, _)) => {
            let before = rows.middle(Step::Text).map_or(row.bytes, |text| text.counts.most());
            let is_again = row.counts.most() as f64 >= before as f64 * SMALL_SHARE;
            let evidence = format!("{}, where it took {} when it came", moved(row), bytes(before));
            (yes(is_again), evidence)
        }
    }
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

fn delta(rows: Rows<'_>) -> (String, String) {
    let (Some((one, share)), insert, append) =
        (rows.share(Step::OneByte), rows.share(Step::Insert), rows.share(Step::Append))
    else {
        return not_known("a changed file never came where it belongs");
    };
    let mut evidence = vec![moved(one)];
    evidence.extend([insert, append].into_iter().flatten().map(|(row, _)| moved(row)));
    let answer = match insert {
        _ if share >= PARTS_SHARE => "no",
        Some((_, share)) if share < PARTS_SHARE => "yes, where bytes move, too",
        _ => "yes, where no byte moves",
    };
    (answer.to_owned(), evidence.join("; "))
}

fn chunking(rows: Rows<'_>) -> (String, String) {
    let Some((row, share)) = rows.share(Step::OneByte) else {
        return not_known("a changed file never came where it belongs");
    };
    let sizes: Vec<u64> = rows
        .0
        .iter()
        .filter(|row| row.step == Step::OneByte)
        .map(|row| row.counts.most())
        .collect();
    let all: Vec<String> = sizes.iter().map(|&size| bytes(size)).collect();
    let evidence = format!(
        "one byte changed at {} places of {} moved {}; a file of 1 KiB {}",
        sizes.len(),
        bytes(row.bytes),
        all.join(", "),
        bytes(rows.overhead())
    );
    let unit = row.counts.most().saturating_sub(rows.overhead());
    let answer = match unit {
        _ if share >= PARTS_SHARE => "no: whole files".to_owned(),
        unit => format!("parts: a changed byte moves {}", bytes(unit)),
    };
    (answer, evidence)
}

fn bundling(rows: Rows<'_>) -> (String, String) {
    let Some(row) = rows.middle(Step::Bundle) else {
        return not_known("small files never came where they belong");
    };
    let Row { files, counts, .. } = row;
    let turns = counts.turns as f64 / (*files).max(1) as f64;
    let evidence = format!(
        "{files} files of 1 KiB at once: {} connections begun, {} times a client spoke after its server, {} for {} of content",
        counts.connections,
        counts.turns,
        bytes(counts.most()),
        bytes(row.bytes)
    );
    let answer = if counts.connections >= *files {
        "no: a connection for each file".to_owned()
    } else if turns < BUNDLED {
        format!("nobody waits for each file: {turns:.2} turns a file")
    } else {
        format!("no: {turns:.1} turns a file")
    };
    (answer, evidence)
}

/// How many bytes go over the wire for each that is new: what Li et al. (IMC 2014) call traffic usage efficiency (TUE).
fn traffic(rows: Rows<'_>, step: Step) -> (String, String) {
    let Some(row) = rows.middle(step) else {
        return not_known("a file never came where it belongs");
    };
    let Row { files, bytes: all, counts, .. } = row;
    let new = match step {
        Step::Halves => all / 2 + all / 2 / (*files).max(1),
        _ => *all,
    };
    let times = counts.most() as f64 / new.max(1) as f64;
    (format!("{times:.3} times what is new"), format!("{}, {} new", moved(row), bytes(new)))
}

fn readiness(rows: Rows<'_>) -> (String, String) {
    let named = [
        (Step::Small, "1 KiB"),
        (Step::Large, "the large file"),
        (Step::Bundle, "the small files"),
    ];
    let took = |step: Step| rows.middle(step).and_then(|row| row.took);
    let Some(small) = took(Step::Small) else {
        return not_known("nobody can see when a file is where it belongs, or it never was");
    };
    let each = named
        .iter()
        .filter_map(|(step, name)| Some(format!("{name} {:.2} s", took(*step)?.as_secs_f64())));
    (format!("{:.2} s", small.as_secs_f64()), each.collect::<Vec<_>>().join(", "))
}

fn loss(subject: &Subject, rows: Rows<'_>) -> (String, String) {
    let Some(row) = rows.0.iter().find(|row| row.step == Step::Load) else {
        return not_known("the load was never put on it");
    };
    if subject.seen_in.is_none() {
        return not_known("nobody said where files are to be seen");
    }
    let evidence = match row.took {
        Some(took) => {
            format!("{} files of 1 KiB were there after {:.1} s", row.files, took.as_secs_f64())
        }
        None => format!(
            "{} of {} files of 1 KiB were not there after {:.0} s",
            row.missing,
            row.files,
            subject.patience.as_secs_f64()
        ),
    };
    (format!("{} of {}", row.missing, row.files), evidence)
}

fn idle(rows: Rows<'_>) -> (String, String) {
    let row = rows.0.iter().find(|row| row.step == Step::Idle && row.is_silent);
    let Some((row, took)) = row.and_then(|row| Some((row, row.took?))) else {
        return not_known("nobody has listened");
    };
    let seconds = took.as_secs_f64().max(1e-3);
    let both = row.counts.up.wire + row.counts.down.wire;
    let packets = row.counts.up.packets + row.counts.down.packets;
    let rate = (both as f64 / seconds) as u64;
    let evidence =
        format!("{} in {packets} packets in {seconds:.1} s in which nothing happened", bytes(both));
    (format!("{}/s", bytes(rate)), evidence)
}
