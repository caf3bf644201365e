//! Parses durations, rates and sizes: `5s`, `250ms`, `2m`; `10/s`; `64KB`, `16MB`.

use std::time::Duration;

/// Parses a duration.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// Parses a number of times in a second, a minute or an hour.
pub(crate) fn rate(text: &str) -> Option<(u32, Duration)> {
    let (times, unit) = text.split_once('/')?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let times = times.parse().ok().filter(|times| *times > 0)?;
    Some((times, Duration::from_secs(seconds)))
}

/// Parses a number of bytes.
pub(crate) fn size(text: &str) -> Option<usize> {
    let (number, unit) = split(text)?;
    let bytes: u64 = match unit {
        "B" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)?.try_into().ok()
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_parsed() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2 m"), Some(Duration::from_secs(120)));
        assert_eq!(size("64KB"), Some(65536));
        assert_eq!(size("1 B"), Some(1));
        assert_eq!(rate("100/m"), Some((100, Duration::from_secs(60))));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "5", "s", "-1s", "1.5s", "5 parsecs", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(size("99999999999999999GB"), None);
        assert_eq!(size("5mb"), None);
        for text in ["", "0/s", "5", "5/d", "-1/s", "/s", "99999999999/s"] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
