//! How figures, times and names look.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use model::{RelativePath, Timestamp};
use sync::engine::At;

use crate::error::{CommandError, Result};

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// Returns a size for people.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Reads a size: a number, and a unit of 1024 or 1000.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    let factor: u64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Returns a number with separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number and the noun that fits it.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Returns a span of time for people.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        ..0.0995 => format!("{:.0} ms", seconds * 1000.0),
        ..99.95 => format!("{seconds:.1} s"),
        ..5940.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Returns a time that people would find in a calendar.
fn calendar_time(time: Timestamp) -> Option<jiff::Timestamp> {
    let found = jiff::Timestamp::new(time.seconds, i32::try_from(time.nanoseconds).ok()?).ok()?;
    let year = found.to_zoned(TimeZone::UTC).year();
    (0..=9999).contains(&year).then_some(found)
}

/// Returns a time for programs, in UTC; one that no calendar has, as its seconds.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    calendar_time(time).map_or_else(|| format!("@{}", time.seconds), |found| found.to_string())
}

/// Returns a time for people, in their time zone.
pub(crate) fn day_and_time(time: Timestamp, zone: &TimeZone) -> String {
    let Some(found) = calendar_time(time) else { return format!("@{}", time.seconds) };
    found.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns a time that [`rfc3339`] wrote, for people.
pub(crate) fn of_rfc3339(text: &str, zone: &TimeZone) -> String {
    let Ok(time) = text.parse::<jiff::Timestamp>() else { return text.to_owned() };
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the time of day, in the time zone of the people who read it.
pub(crate) fn time_of_day(time: Timestamp, zone: &TimeZone) -> String {
    let found = calendar_time(time).map(|found| found.to_zoned(zone.clone()));
    found.map(|found| found.strftime("%H:%M:%S").to_string()).unwrap_or_default()
}

/// Reads a point in the history: `v12`, `12`, or a time, which without an offset is one of the time zone at hand.
pub(crate) fn parse_at(text: &str, zone: &TimeZone) -> Result<At> {
    if let Ok(seq) = text.strip_prefix('v').unwrap_or(text).parse() {
        return Ok(At::Seq(seq));
    }
    let text = text.trim();
    let local = |time: DateTime| Some(time.to_zoned(zone.clone()).ok()?.timestamp());
    // A day means its end: what was there on that day.
    let day = || text.parse::<Date>().ok().filter(|_| text.len() == "2026-11-20".len());
    let time = (text.parse::<jiff::Timestamp>().ok())
        .or_else(|| local(day()?.at(23, 59, 59, 0)))
        .or_else(|| local(text.parse().ok()?));
    let Some(time) = time else {
        return Err(CommandError::usage(format!("'{text}' is neither a version nor a time"))
            .help("--at v12", "a version, as `syncline log` lists them")
            .help("--at '2026-11-20 10:09'", "a local time; also as RFC 3339 with an offset"));
    };
    Ok(At::Time(Timestamp { seconds: time.as_second(), nanoseconds: 999_999_999 }))
}

/// Returns a word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Writes the bytes of a path as they stand in an address of a server.
pub(crate) fn encode_address(bytes: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match is_plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Reads what [`encode_address`] has written, for people: bytes that are no text are replaced.
pub(crate) fn decode_address(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        match u8::from_str_radix(digits, 16) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend([b"%", digits.as_bytes()].concat()),
        }
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a path for programs: its text, where it is text.
pub(crate) fn path_text(path: &RelativePath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_four_digits_at_most() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (327_571_046, "312.4 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        assert_eq!(parse_size("50GiB"), Some(50 << 30));
        assert_eq!(parse_size("50 gb"), Some(50_000_000_000));
        assert_eq!(parse_size("7"), Some(7));
        for text in ["", "GiB", "-1", "1.5G", "99999999999999T"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    fn east() -> TimeZone {
        TimeZone::fixed(jiff::tz::offset(2))
    }

    #[test]
    fn points_in_the_history_are_read() {
        let utc = TimeZone::UTC;
        assert_eq!(parse_at("v12", &utc).unwrap(), At::Seq(12));
        assert_eq!(parse_at("12", &utc).unwrap(), At::Seq(12));
        let at = |seconds| At::Time(Timestamp { seconds, nanoseconds: 999_999_999 });
        assert_eq!(parse_at("1970-01-02", &utc).unwrap(), at(2 * 86_400 - 1));
        assert_eq!(parse_at("1970-01-02 00:01", &utc).unwrap(), at(86_460));
        assert_eq!(parse_at("1970-01-02 00:01:02Z", &utc).unwrap(), at(86_462));
        assert_eq!(parse_at("1970-01-02T01:00:00+01:00", &utc).unwrap(), at(86_400));
        for text in ["yesterday", "", "2026-13-01", "2026-11-20 25:00"] {
            assert!(parse_at(text, &utc).is_err(), "{text}");
        }
    }

    #[test]
    fn times_without_an_offset_are_local_and_come_back_as_they_were_shown() {
        let at = |seconds| At::Time(Timestamp { seconds, nanoseconds: 999_999_999 });
        assert_eq!(parse_at("1970-01-02 02:00", &east()).unwrap(), at(86_400));
        assert_eq!(parse_at("1970-01-02", &east()).unwrap(), at(2 * 86_400 - 1 - 7_200));
        assert_eq!(parse_at("1970-01-02 02:00Z", &east()).unwrap(), at(86_400 + 7_200));
        let shown = day_and_time(Timestamp { seconds: 1_000_000, nanoseconds: 5 }, &east());
        assert_eq!(shown, "1970-01-12 15:46:40");
        assert_eq!(parse_at(&shown, &east()).unwrap(), at(1_000_000));
        assert_eq!(
            time_of_day(Timestamp { seconds: 1_000_000, nanoseconds: 5 }, &east()),
            "15:46:40"
        );
        assert_eq!(of_rfc3339("1970-01-12T13:46:40.5Z", &east()), shown);
    }

    #[test]
    fn times_outside_of_the_calendar_are_shown_as_numbers() {
        for seconds in [i64::MAX, i64::MIN, -100_000_000_000] {
            let time = Timestamp { seconds, nanoseconds: 0 };
            assert_eq!(rfc3339(time), format!("@{seconds}"));
            assert_eq!(day_and_time(time, &east()), format!("@{seconds}"));
        }
        assert_eq!(rfc3339(Timestamp::default()), "1970-01-01T00:00:00Z");
        let before = Timestamp { seconds: -2, nanoseconds: 999_999_999 };
        assert_eq!(rfc3339(before), "1969-12-31T23:59:58.999999999Z");
    }

    #[test]
    fn paths_return_from_addresses() {
        for path in ["a/b c", "100%", "büro/ä", "", "%41", "a+b&c"] {
            assert_eq!(decode_address(&encode_address(path.as_bytes())), path);
        }
        assert_eq!(encode_address("ü/ %".as_bytes()), "%C3%BC/%20%25");
        assert_eq!(decode_address("%"), "%");
        assert_eq!(decode_address("%zz%4"), "%zz\u{4}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("a/b.txt"), "a/b.txt");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "file", "files"), "1 file");
    }
}
