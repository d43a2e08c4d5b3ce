//! What follows from what was seen of a store. Every answer says from which numbers.

use std::time::Duration;

use super::listings::Flaws;
use super::visibility::Sight;
use super::{Change, Findings, Level, Listings, Load, Races, Subject, Tally, Visibility};
use crate::probe::answers::{Answer, bytes, not_known};

/// More calls at once are worth it where they do so many times as much.
const WORTH: f64 = 1.1;

type Said = (String, String);

/// Answers all questions, always in the same order.
pub fn answers(subject: &Subject<'_>, findings: &Findings) -> Vec<Answer> {
    let calls = |of: fn(&super::Calls) -> &Tally| findings.calls.as_ref().map(of);
    let sizes = subject.sizes;
    let seen = |change: Change| findings.visibility.iter().find(|it| it.change == change);
    let ready = |change, of| seen(change).map_or_else(ended, |it| ready(subject, it, of));
    let (read, listed): (Way, Way) = (Way::Read, Way::Listed);
    let answers: [(&str, Said); 20] = [
        ("Put of 1 KiB", time(calls(|it| &it.put))),
        ("Get of 1 KiB", time(calls(|it| &it.get))),
        ("List of a folder", time(calls(|it| &it.list))),
        ("Delete", time(calls(|it| &it.delete))),
        ("Bandwidth up", bandwidth(calls(|it| &it.up), sizes.large)),
        ("Bandwidth down", bandwidth(calls(|it| &it.down), sizes.large)),
        ("Calls at once", at_once(&findings.levels)),
        ("Ready after", ready(Change::New, read)),
        ("Listed after", ready(Change::New, listed)),
        ("Overwriting read after", ready(Change::Overwritten, read)),
        ("Overwriting listed after", ready(Change::Overwritten, listed)),
        ("Removal read after", ready(Change::Removed, read)),
        ("Removal listed after", ready(Change::Removed, listed)),
        ("Lists while objects come and go", findings.listings.as_ref().map_or_else(ended, lists)),
        ("Lists over several pages", findings.listings.as_ref().map_or_else(ended, last_list)),
        ("Loss under load", findings.load.as_ref().map_or_else(ended, loss)),
        ("Makes an object only where none is", findings.races.as_ref().map_or_else(ended, races)),
        ("Empty object", object(calls(|it| &it.empty), 0)),
        ("Largest object tried", object(calls(|it| &it.largest), sizes.largest)),
        ("Calls that failed", failed(&findings.all)),
    ];
    let answer = |(feature, (answer, evidence)): (&str, Said)| Answer {
        feature: feature.to_owned(),
        answer,
        evidence,
    };
    answers.into_iter().map(answer).collect()
}

fn ended() -> Said {
    not_known("it was ended before that")
}

/// Says a time so that short ones can be told apart.
pub(super) fn span(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        0.0 => "0".to_owned(),
        ..10.0 => format!("{millis:.2} ms"),
        ..1000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.2} s", millis / 1e3),
    }
}

/// Says how large an object is.
fn size(count: usize) -> String {
    match (count >> 20, count % (1 << 20)) {
        (1.., 0) => format!("{} MiB", count >> 20),
        _ => bytes(count as u64),
    }
}

/// Says what was refused and what failed, if anything, and the first reason.
fn bad(tally: &Tally) -> String {
    let Tally { refused, failed, words, .. } = tally;
    let why = words.as_deref().unwrap_or("nobody said why");
    match (refused, failed) {
        (0, 0) => String::new(),
        (0, failed) => format!("; {failed} failed ({why})"),
        (refused, 0) => format!("; {refused} refused ({why})"),
        (refused, failed) => format!("; {refused} refused and {failed} failed ({why})"),
    }
}

fn time(tally: Option<&Tally>) -> Said {
    let Some(tally) = tally else { return ended() };
    let done = tally.times.len();
    let (Some(median), Some(most), Some(longest)) =
        (tally.within(0.5), tally.within(0.99), tally.within(1.0))
    else {
        return not_known(format!("no call succeeded{}", bad(tally)));
    };
    let [median, most, longest] = [median, most, longest].map(span);
    let evidence = format!(
        "{done} one after the other: half within {median}, 99 of 100 within {most}, all within {longest}{}",
        bad(tally)
    );
    (format!("{median}, 99 %: {most}"), evidence)
}

fn bandwidth(tally: Option<&Tally>, large: usize) -> Said {
    let Some(tally) = tally else { return ended() };
    let Some(median) = tally.within(0.5) else {
        return not_known(format!("no large object went through{}", bad(tally)));
    };
    let rate = large as f64 / median.as_secs_f64().max(1e-9);
    let times: Vec<String> = tally.times.iter().map(|time| span(*time)).collect();
    let evidence = format!("{} in {}{}", size(large), times.join(", "), bad(tally));
    (format!("{}/s", bytes(rate as u64)), evidence)
}

/// The least number of calls at once beyond which no other one does a tenth more.
fn at_once(levels: &[Level]) -> Said {
    let best = |from: usize| levels[from..].iter().map(Level::rate).fold(0.0, f64::max);
    let enough = |at: &usize| best(*at) < levels[*at].rate() * WORTH;
    let Some(at) = (0..levels.len()).find(enough) else {
        return match levels {
            [] => ended(),
            // Nothing at all was put.
            [first, ..] => not_known(format!("no object was put{}", bad(&first.tally))),
        };
    };
    let rates = levels.iter().map(|level| format!("{} {:.0}/s", level.calls, level.rate()));
    let mut all = Tally::default();
    for level in levels {
        all.merge(level.tally.clone());
    }
    let evidence = format!(
        "puts of 1 KiB with so many calls at once: {}; {} in all{}",
        rates.collect::<Vec<_>>().join(", "),
        all.times.len() as u64 + all.bad(),
        bad(&all)
    );
    let refused =
        if all.refused > 0 { format!(", {} refused", all.refused) } else { String::new() };
    let or_more = if at + 1 == levels.len() { " or more" } else { "" };
    let Level { calls, .. } = levels[at];
    (format!("{calls}{or_more}: {:.0} puts/s{refused}", levels[at].rate()), evidence)
}

#[derive(Clone, Copy)]
enum Way {
    Read,
    Listed,
}

fn ready(subject: &Subject<'_>, found: &Visibility, way: Way) -> Said {
    let (sight, looks) = match way {
        Way::Read => (&found.read, "reads"),
        Way::Listed => (&found.listed, "lists"),
    };
    let Sight { after, never, stale, back } = sight;
    if found.tried == 0 {
        return not_known(format!("no change was acknowledged{}", bad(&found.tally)));
    }
    let times = Tally { times: after.clone(), ..Tally::default() };
    let at_once = after.iter().filter(|time| time.is_zero()).count();
    let middle = times.within(0.5).unwrap_or_default();
    let longest = times.within(1.0).unwrap_or_default();
    let mut evidence = format!("{at_once} of {} at the first look", found.tried);
    if at_once < after.len() {
        evidence += &format!(", half within {}, all within {}", span(middle), span(longest));
    }
    let patience = span(subject.patience);
    if *never > 0 {
        evidence += &format!(", {never} never within {patience}");
    }
    evidence += &format!("; {stale} {looks} showed something else");
    if *back > 0 {
        evidence += &format!(", {back} of them after one that had shown it");
    }
    evidence += &bad(&found.tally);
    let mut answer = match (never, longest.is_zero()) {
        (1.., _) => format!("not within {patience}"),
        (0, true) => "at once".to_owned(),
        (0, false) => span(longest),
    };
    if *back > 0 {
        answer += &format!(", {back} {looks} went back");
    }
    (answer, evidence)
}

fn wrong(flaws: &Flaws) -> String {
    let kinds = [
        (flaws.lacking, "lacked what was acknowledged"),
        (flaws.lingering, "named what was removed"),
        (flaws.twice, "named something twice"),
        (flaws.strange, "named what nobody put"),
        (flaws.disordered, "were out of order"),
    ];
    let found = kinds.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = found.map(|(count, what)| format!("{count} times {what}")).collect();
    words.join(", ")
}

fn example(flaws: &Flaws) -> String {
    flaws.example.as_ref().map_or_else(String::new, |name| format!(", for example {name}"))
}

fn lists(found: &Listings) -> Said {
    let Listings { put, removed, writes, lists, pages, flaws, .. } = found;
    let evidence = format!(
        "{} lists of {pages} pages while {put} objects came and {removed} went: {} flaws{}{}{}",
        lists.times.len(),
        flaws.all(),
        example(flaws),
        bad(lists),
        bad(writes)
    );
    match (flaws.all(), lists.times.len()) {
        (_, 0) => not_known(evidence),
        (0, _) => ("right".to_owned(), evidence),
        _ => (wrong(flaws), evidence),
    }
}

fn last_list(found: &Listings) -> Said {
    let Listings { put, removed, last, last_pages, last_flaws, settled, .. } = found;
    let left = put - removed;
    let first = if last_flaws.all() > 0 {
        format!("; the first list {}{}", wrong(last_flaws), example(last_flaws))
    } else {
        String::new()
    };
    match settled {
        Some(after) => {
            let evidence = format!("{left} objects in {last_pages} pages{first}{}", bad(last));
            match after.is_zero() {
                true => ("right".to_owned(), evidence),
                false => (format!("right after {}", span(*after)), evidence),
            }
        }
        None if last.times.is_empty() => not_known(format!("no list came{}", bad(last))),
        None => {
            let evidence = format!("{left} objects, and no list was right{first}{}", bad(last));
            ("never right".to_owned(), evidence)
        }
    }
}

fn loss(load: &Load) -> Said {
    let acknowledged = load.tally.times.len();
    let seconds = load.took.as_secs_f64();
    let mut evidence = format!(
        "{} objects of 1 KiB in {seconds:.1} s, {acknowledged} acknowledged{}; read again: {} lost, {} damaged",
        load.tried,
        bad(&load.tally),
        load.lost,
        load.damaged
    );
    for (count, what) in [
        (load.unread, "could not be read"),
        (load.late, "were there only after a while"),
        (load.unacknowledged, "are there although their put failed"),
        (load.torn, "are something else after a put that failed"),
    ] {
        if count > 0 {
            evidence += &format!(", {count} {what}");
        }
    }
    if let Some(example) = &load.example {
        evidence += &format!(", for example {example}");
    }
    if acknowledged == 0 {
        return not_known(evidence);
    }
    let mut answer = format!("{} of {acknowledged}", load.lost + load.damaged);
    if load.unread > 0 {
        answer += &format!(", {} not known", load.unread);
    }
    (answer, evidence)
}

fn races(races: &Races) -> Said {
    let Races { run, good, several, nobody, other, late, undecided, tally, .. } = races;
    if races.is_unsupported {
        return ("not offered".to_owned(), "the store has no way to do it".to_owned());
    }
    let evidence = format!(
        "of {run} races of eight for one name {good} had one winner whose bytes stayed, {several} several winners, {nobody} none, \
         {other} other bytes, {late} were written over by a ninth, {undecided} undecided{}",
        bad(tally)
    );
    match (races.bad(), good) {
        (0, 0) => not_known(evidence),
        (0, _) => ("yes".to_owned(), evidence),
        (bad, _) => (format!("no: {bad} of {run} races went wrong"), evidence),
    }
}

fn object(tally: Option<&Tally>, length: usize) -> Said {
    let Some(tally) = tally else { return ended() };
    let size = size(length);
    match &tally.times[..] {
        [] | [_] if tally.bad() == 0 => ended(),
        [put, get] => {
            (format!("{size}, whole"), format!("put in {}, read in {}", span(*put), span(*get)))
        }
        _ => (format!("not {size}"), format!("it did not come back as it was{}", bad(tally))),
    }
}

fn failed(all: &Tally) -> Said {
    let (done, bad_ones) = (all.times.len() as u64, all.bad());
    let evidence = format!("{} of {} calls succeeded{}", done, done + bad_ones, bad(all));
    (bad_ones.to_string(), evidence)
}
