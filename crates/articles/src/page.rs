//! Reads one file for the index.
//!
//! A file that seems to be in the middle of a save is held back, and its old state is kept.

use std::io::ErrorKind;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::xxh3_64;

use crate::article::{self, Hidden, ParsedArticle};
use crate::folder::{Folder, Found, LARGEST_FILE, ReadError, Stamp};
use crate::format::Format;
use crate::listing::Entry;
use crate::pdf::{self, LARGEST_PDF};
use crate::problem::Problem;
use crate::settings::Settings;

/// A file that looks unfinished is read anyway when it has not been written to for this long.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Two writes within this time may have the same modification time.
const CLOCK: Duration = Duration::from_millis(20);

/// The same on file systems with a resolution of seconds.
const COARSE_CLOCK: Duration = Duration::from_secs(2);

/// The result of reading a file.
#[derive(Debug)]
pub(crate) enum Outcome {
    Read(Box<Page>),
    /// It is being written: read it again later.
    Held,
    /// It does not exist any more.
    Gone,
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entry: Entry,
    pub(crate) reading: ParsedArticle,
}

/// Reads a file that a scan found.
pub(crate) fn read(
    folder: &Folder,
    found: &Found,
    settings: &Settings,
    now: SystemTime,
) -> Outcome {
    let path = &*found.path;
    let is_pdf = Format::of(path) == Some(Format::Pdf);
    let largest = if is_pdf { LARGEST_PDF } else { LARGEST_FILE };
    let (stamp, hash, reading) = match folder.read(path, largest) {
        Ok((bytes, stamp)) => {
            let hash = xxh3_64(&bytes);
            let reading = match is_pdf {
                true => pdf::read(path, bytes, settings.pdf.as_ref()),
                false => article::read(path, &bytes, settings.statuses.as_deref()),
            };
            if reading.unfinished && age(stamp, now) < SETTLE_TIME {
                return Outcome::Held;
            }
            (stamp, hash, reading)
        }
        Err(ReadError::Changing) => return Outcome::Held,
        Err(ReadError::Io(error)) if error.kind() == ErrorKind::NotFound => return Outcome::Gone,
        Err(ReadError::Io(error)) => (
            found.stamp,
            0,
            article::unread(Problem::of(path, error.to_string()), Hidden::Unreadable),
        ),
        Err(ReadError::TooLarge(size)) => {
            let message = format!("not served: {size} bytes (limit {largest})");
            (found.stamp, 0, article::unread(Problem::of(path, message), Hidden::TooLarge))
        }
    };
    let date = reading.updated.as_ref().or(reading.published.as_ref()).map(|when| when.seconds);
    let entry = Entry {
        path: found.path.clone(),
        stamp,
        hash,
        updated: date.unwrap_or_else(|| stamp.mtime.div_euclid(1_000_000_000)),
        hidden: reading.hidden,
        names: names(&reading),
        linked: found.linked,
        language: reading.language.unwrap_or(settings.language),
        unsure: age(stamp, now)
            < if stamp.mtime % 1_000_000_000 == 0 { COARSE_CLOCK } else { CLOCK },
    };
    Outcome::Read(Box::new(Page { entry, reading }))
}

/// The names that links use for an article: its title, and its addresses on its site.
fn names(reading: &ParsedArticle) -> Box<[Box<str>]> {
    let names = std::iter::once(&reading.title).chain(&reading.addresses);
    names.map(|name| name.replace(|c: char| c.is_control(), " ").into()).collect()
}

/// How long ago the file was written. A time in the future counts as long ago.
fn age(stamp: Stamp, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = Duration::from_nanos(u64::try_from(stamp.mtime).unwrap_or(0));
    now.checked_sub(written).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ignored::Rules;

    fn read_at(file: &str, after: Duration) -> Outcome {
        let home = tempfile::TempDir::new().unwrap();
        fs::write(home.path().join("a.md"), file).unwrap();
        let folder = Folder::open(home.path(), Rules::new(&[], &[]).unwrap()).unwrap();
        let found = folder.scan("").found.remove(0);
        let written = UNIX_EPOCH + Duration::from_nanos(found.stamp.mtime as u64);
        read(&folder, &found, &Settings::new(""), written + after)
    }

    fn page(outcome: Outcome) -> Page {
        match outcome {
            Outcome::Read(page) => *page,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unfinished_file_is_held_until_it_settles() {
        for file in ["", "---\ntitle: A", "---\n"] {
            let just_before = SETTLE_TIME - Duration::from_nanos(1);
            assert!(matches!(read_at(file, Duration::ZERO), Outcome::Held), "{file:?}");
            assert!(matches!(read_at(file, just_before), Outcome::Held), "{file:?}");
            assert!(matches!(read_at(file, SETTLE_TIME), Outcome::Read(_)), "{file:?}");
        }
        assert!(matches!(read_at("---\ntitle: A\n---\n", Duration::ZERO), Outcome::Read(_)));
    }

    #[test]
    fn a_file_that_was_just_written_is_unsure() {
        assert!(page(read_at("text", Duration::ZERO)).entry.unsure);
        assert!(!page(read_at("text", COARSE_CLOCK)).entry.unsure);
    }

    #[test]
    fn the_date_is_the_authors_or_the_files() {
        let entry =
            page(read_at("---\nlastUpdated: 1970-01-02\ndate: 1970-01-03\n---\n", SETTLE_TIME))
                .entry;
        assert_eq!(entry.updated, 86_400);
        let entry = page(read_at("---\ndate: 1970-01-03\n---\n", SETTLE_TIME)).entry;
        assert_eq!(entry.updated, 2 * 86_400);
        let entry = page(read_at("text", SETTLE_TIME)).entry;
        assert_eq!(entry.updated, entry.stamp.mtime / 1_000_000_000);
    }

    #[test]
    fn a_file_that_cannot_be_served_is_hidden_and_reported() {
        let home = tempfile::TempDir::new().unwrap();
        let file = fs::File::create(home.path().join("a.md")).unwrap();
        file.set_len(LARGEST_FILE + 1).unwrap();
        let folder = Folder::open(home.path(), Rules::new(&[], &[]).unwrap()).unwrap();
        let found = folder.scan("").found.remove(0);
        let settings = Settings::new("");
        let page = page(read(&folder, &found, &settings, SystemTime::now()));
        assert_eq!(page.entry.hidden, Some(Hidden::TooLarge));
        assert_eq!(page.reading.problems.len(), 1);
        fs::remove_file(home.path().join("a.md")).unwrap();
        assert!(matches!(read(&folder, &found, &settings, SystemTime::now()), Outcome::Gone));
    }
}
