//! Dates as HTTP writes them.

use model::calendar::Moment;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns a time for `Last-Modified`, for example `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date(seconds: i64) -> String {
    let Moment { year, month, day, hour, minute, second, weekday } = Moment::of(seconds);
    let (weekday, month) = (DAYS[weekday], MONTHS[month - 1]);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads what [`http_date`] writes, the form that clients must send.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let (day, year): (i64, i64) = (day.parse().ok()?, year.parse().ok()?);
    let time: Vec<i64> = time.split(':').filter_map(|part| part.parse().ok()).collect();
    let [hour, minute, second] = time[..] else { return None };
    let is_possible = (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_possible {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns a time as RFC 3339 has it, for example `1994-11-06T08:49:37Z`.
pub(crate) fn internet_date(seconds: i64) -> String {
    let Moment { year, month, day, hour, minute, second, .. } = Moment::of(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use model::calendar::SECONDS_MAX;

    use super::*;

    #[test]
    fn known_moments_have_their_known_dates() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (SECONDS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (-5, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), text);
            assert_eq!(parse_http_date(text), Some(seconds.clamp(0, SECONDS_MAX)));
        }
        assert_eq!(internet_date(784_111_777), "1994-11-06T08:49:37Z");
        for text in ["", "Sunday", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"] {
            assert_eq!(parse_http_date(text), None);
        }
    }
}
