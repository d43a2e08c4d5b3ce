//! Moments by the calendar, as dates of other formats have them. Pure.

/// The last second of the year 9999; many formats have four digits for a year.
pub const SECONDS_MAX: i64 = 253_402_300_799;

/// A moment by the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// From 1970 to 9999.
    pub year: i64,
    /// From 1 to 12.
    pub month: usize,
    /// From 1 to 31.
    pub day: i64,
    /// From 0 to 23.
    pub hour: i64,
    /// From 0 to 59.
    pub minute: i64,
    /// From 0 to 59.
    pub second: i64,
    /// From 0 to 6; 1970 began with 0, a Thursday.
    pub weekday: usize,
}

impl Moment {
    /// Returns the moment of seconds since 1970, none before that and after 9999.
    pub fn of(seconds: i64) -> Self {
        let seconds = seconds.clamp(0, SECONDS_MAX);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so that the leap day is the last one.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month as usize,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days % 7) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_seconds_are_their_known_moments() {
        let of = |seconds| {
            let Moment { year, month, day, hour, minute, second, weekday } = Moment::of(seconds);
            (year, month, day, (hour, minute, second), weekday)
        };
        assert_eq!(of(0), (1970, 1, 1, (0, 0, 0), 0));
        assert_eq!(of(951_782_400), (2000, 2, 29, (0, 0, 0), 5));
        assert_eq!(of(1_709_251_199), (2024, 2, 29, (23, 59, 59), 0));
        assert_eq!(of(i64::MAX), (9999, 12, 31, (23, 59, 59), 1));
        assert_eq!(of(-5), of(0));
    }
}
