//! Parses dates in the formats that authors use.
//!
//! A date is kept as text (`2025-01-31`, or with its time) and as a number for sorting. Times without
//! a zone count as UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// The longest date in bytes.
const LONGEST: usize = 64;

/// A date, with a time if one was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// ISO 8601.
    pub(crate) shown: String,
    /// Seconds since 1970.
    pub(crate) seconds: i64,
}

/// Formats besides ISO 8601. Where the order of day and month is ambiguous, slashes are American and
/// dots are European.
const DAYS: [&str; 11] = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%B %d %Y",
    "%b %d %Y", "%d %B %Y", "%d %b %Y",
];

/// Parses a date.
pub(crate) fn parse(text: &str) -> Option<When> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    exact(text).or_else(|| day(text).map(from_day)).or_else(|| month_or_year(text).map(from_day))
}

/// A point in time, as RFC 3339.
pub(crate) fn rfc3339(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

fn exact(text: &str) -> Option<When> {
    // YAML allows a space before the zone: `2025-01-31 17:45:00 +02:00`.
    let zone = text.rsplit_once(' ').filter(|(_, zone)| zone.starts_with(['+', '-', 'Z']));
    let joined = zone.map(|(time, zone)| format!("{time}{zone}"));
    if let Ok(stamp) = joined.as_deref().unwrap_or(text).parse::<Timestamp>() {
        return Some(from_stamp(stamp));
    }
    if let Ok(zoned) = rfc2822::parse(text) {
        return Some(from_stamp(zoned.timestamp()));
    }
    // A day alone is also a valid date-time, but must not be shown with a time.
    if text.contains(':') {
        let civil = text.parse::<DateTime>().ok()?;
        let seconds = TimeZone::UTC.to_timestamp(civil).ok()?.as_second();
        return Some(When { shown: civil.to_string(), seconds });
    }
    text.parse::<Date>().ok().map(from_day)
}

fn from_stamp(stamp: Timestamp) -> When {
    When { shown: stamp.to_string(), seconds: stamp.as_second() }
}

fn from_day(day: Date) -> When {
    let seconds = TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).map_or(0, Timestamp::as_second);
    When { shown: day.to_string(), seconds }
}

/// A day in words or with other separators: `January 31st, 2025`, `31.1.2025`.
fn day(text: &str) -> Option<Date> {
    let plain = simplified(text);
    DAYS.iter().find_map(|form| {
        let parsed = strtime::parse(form, &plain).ok()?;
        // "March 2025" could also be parsed as March 20 in the year 25.
        parsed.to_date().ok().filter(|day| day.year() >= 1000)
    })
}

/// Removes commas, weekdays and ordinal suffixes.
fn simplified(text: &str) -> String {
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty() && !is_weekday(word));
    let words: Vec<&str> = words
        .map(|word| {
            let ordinal =
                ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending));
            let digits = ordinal.filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
            digits
                .unwrap_or(word)
                .trim_end_matches(|c| c == '.' && !word.as_bytes()[0].is_ascii_digit())
        })
        .collect();
    words.join(" ")
}

fn is_weekday(word: &str) -> bool {
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
        .iter()
        .any(|day| word.len() >= 3 && day.starts_with(&word))
}

/// The first day of a month or year: `2025-01`, `January 2025`, `2025`.
fn month_or_year(text: &str) -> Option<Date> {
    let first =
        |form: &str, first_day: String| strtime::parse(form, first_day).ok()?.to_date().ok();
    let named = ["%B %Y %d", "%b %Y %d"].iter().find_map(|form| first(form, format!("{text} 1")));
    named.or_else(|| first("%Y-%m-%d", format!("{text}-1"))).or_else(|| {
        let year = text.parse().ok().filter(|year| text.len() == 4 && *year >= 1000)?;
        Date::new(year, 1, 1).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        parse(text).map(|when| when.shown)
    }

    #[test]
    fn all_formats_of_a_day_are_the_same_day() {
        for text in [
            "2025-01-31",
            "2025-1-31",
            "2025/01/31",
            "2025.01.31",
            "20250131",
            "31.01.2025",
            "31.1.2025",
            "01/31/2025",
            "31/01/2025",
            "31-01-2025",
            "January 31, 2025",
            "Jan 31, 2025",
            "Jan. 31 2025",
            "31 January 2025",
            "31 Jan 2025",
            "31st January 2025",
            "Friday, January 31st, 2025",
            " 2025-01-31 ",
        ] {
            assert_eq!(shown(text).as_deref(), Some("2025-01-31"), "{text}");
            assert_eq!(parse(text).unwrap().seconds, 1_738_281_600, "{text}");
        }
    }

    #[test]
    fn times_are_kept_and_sorted_by_their_zone() {
        assert_eq!(shown("2025-01-31T10:00:00Z").as_deref(), Some("2025-01-31T10:00:00Z"));
        assert_eq!(shown("2025-01-31T10:00:00+02:00").as_deref(), Some("2025-01-31T08:00:00Z"));
        assert_eq!(shown("2025-01-31 10:00:00 +02:00").as_deref(), Some("2025-01-31T08:00:00Z"));
        assert_eq!(shown("2025-01-31 10:00:00 Z").as_deref(), Some("2025-01-31T10:00:00Z"));
        assert_eq!(shown("2025-01-31 10:00:00").as_deref(), Some("2025-01-31T10:00:00"));
        assert_eq!(shown("2025-01-31T10:00").as_deref(), Some("2025-01-31T10:00:00"));
        assert_eq!(
            shown("Fri, 31 Jan 2025 10:00:00 +0000").as_deref(),
            Some("2025-01-31T10:00:00Z")
        );
        assert!(
            parse("2025-01-31T10:00:00+02:00").unwrap().seconds
                < parse("2025-01-31T10:00:00Z").unwrap().seconds
        );
    }

    #[test]
    fn a_month_or_a_year_is_its_first_day() {
        assert_eq!(shown("2025-03").as_deref(), Some("2025-03-01"));
        assert_eq!(shown("March 2025").as_deref(), Some("2025-03-01"));
        assert_eq!(shown("Mar 2025").as_deref(), Some("2025-03-01"));
        assert_eq!(shown("2025").as_deref(), Some("2025-01-01"));
    }

    #[test]
    fn other_texts_are_not_dates() {
        for text in [
            "",
            "soon",
            "2025-13-01",
            "2025-02-30",
            "31",
            "99999",
            "yesterday 2025",
            "1/2",
            "----",
            "٣",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"2".repeat(100_000)), None);
    }

    #[test]
    fn seconds_are_shown_as_rfc_3339() {
        assert_eq!(rfc3339(1_738_281_600), "2025-01-31T00:00:00Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }
}
