//! The vectors of passages, for a search by meaning.
//!
//! A model in another process computes them. They are kept in memory and beside the index, by the
//! hash of their text, so that no text is sent twice. A vector takes a byte for each of its
//! numbers. The search compares with all of them: ten thousand take a few milliseconds.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use xxhash_rust::xxh3::xxh3_64;

use crate::answer::stored;
use crate::article::shortened;
use crate::index::Stored;
use crate::listing::Entry;
use crate::results::StoreError;
use crate::sections::own_text;
use crate::snapshot::Snapshot;

/// The limit of vectors. Further passages have none.
const MOST_VECTORS: usize = 200_000;

/// The limit of numbers in a vector. A longer one is refused.
const MOST_NUMBERS: usize = 8192;

/// The limit of passages of an article that have vectors: its first ones.
const MOST_PASSAGES: usize = 24;

/// The number of articles that are checked while the lock is held.
const AT_ONCE: usize = 64;

/// The longest text of a passage, in characters.
const LONGEST_TEXT: usize = 1500;

/// A shorter passage has no vector, unless it is the only one.
const SHORTEST_TEXT: usize = 40;

/// The beginning of the file, with the version of its format.
const HEAD: &[u8] = b"sabir vectors 1\n";

/// A passage without a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Identifies the text.
    pub key: u64,
    /// The text that the vector is computed from.
    pub text: String,
}

/// The vectors of the passages of a folder, by one model.
pub(crate) struct Vectors {
    /// `None`: they are kept in memory only.
    file: Option<PathBuf>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// The numbers of each vector. 0: none is known.
    length: usize,
    vectors: HashMap<u64, Vector>,
    articles: HashMap<Box<str>, Known>,
    /// Texts that the model refuses.
    refused: HashSet<u64>,
}

impl State {
    fn refuse(&mut self, key: u64) {
        if self.refused.len() < MOST_VECTORS {
            self.refused.insert(key);
        }
    }

    /// Whether all passages of an article have vectors.
    fn is_complete(&self, entry: &Entry) -> bool {
        let known = self.articles.get(&entry.path);
        known.is_some_and(|known| known.hash == entry.hash && known.is_complete)
    }

    /// Notes the passages of an article, and adds those without vectors to `missing`.
    fn note(
        &mut self,
        entry: &Entry,
        passages: Vec<(usize, Passage)>,
        missing: &mut Vec<Passage>,
        most: usize,
    ) {
        let mut known = Known { hash: entry.hash, passages: Vec::new(), is_complete: true };
        for (section, passage) in passages {
            let key = passage.key;
            known.passages.push((section, key));
            if self.vectors.contains_key(&key) || self.refused.contains(&key) {
                continue;
            }
            known.is_complete = false;
            if missing.len() < most && !missing.iter().any(|it| it.key == key) {
                missing.push(passage);
            }
        }
        self.articles.insert(entry.path.clone(), known);
    }
}

/// A vector of length 1, as whole numbers from -127 to 127.
struct Vector {
    scale: f32,
    numbers: Box<[i8]>,
}

/// The passages of an article, as they were when its file had this hash.
struct Known {
    hash: u64,
    /// The numbers of their sections, and their keys.
    passages: Vec<(usize, u64)>,
    /// Whether all have vectors.
    is_complete: bool,
}

/// An article that is near in meaning, and its section.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Near {
    pub(crate) path: Box<str>,
    pub(crate) section: usize,
    pub(crate) likeness: f32,
}

impl Vectors {
    /// The vectors that are kept for a folder, by a model of this name.
    pub(crate) fn open(cache: Option<&Path>, folder: &Path, model: &str) -> Self {
        let name = [folder.as_os_str().as_encoded_bytes(), b"\0", model.as_bytes()].concat();
        let file = cache
            .map(|cache| cache.join("articles").join(format!("vectors-{:016x}", xxh3_64(&name))));
        let state = file.as_deref().and_then(open_file).unwrap_or_default();
        Self { file, state: RwLock::new(state) }
    }

    /// Up to `most` passages of the articles that have no vectors yet.
    pub(crate) fn missing(
        &self,
        snapshot: &Snapshot,
        most: usize,
    ) -> Result<Vec<Passage>, StoreError> {
        let articles = snapshot.listing.articles();
        let mut missing: Vec<Passage> = Vec::new();
        // Searches wait for the lock, so nothing is read while it is held.
        for some in articles.chunks(AT_ONCE) {
            let incomplete: Vec<&Arc<Entry>> = {
                let state = self.read();
                some.iter().filter(|entry| !state.is_complete(entry)).collect()
            };
            let texts = incomplete.iter().map(|entry| Ok(passages(&stored(snapshot, entry)?)));
            let texts = texts.collect::<Result<Vec<_>, StoreError>>()?;
            let state = &mut *self.write();
            for (entry, passages) in incomplete.into_iter().zip(texts) {
                state.note(entry, passages, &mut missing, most);
            }
            if missing.len() >= most {
                break;
            }
        }
        let state = &mut *self.write();
        if state.articles.len() > articles.len() {
            state.articles.retain(|path, _| snapshot.listing.serves(path).is_some());
        }
        if state.vectors.len() + missing.len() > MOST_VECTORS {
            let used = state.articles.values().flat_map(|known| &known.passages);
            let used: HashSet<u64> = used.map(|(_, key)| *key).collect();
            state.vectors.retain(|key, _| used.contains(key));
            missing.truncate(MOST_VECTORS.saturating_sub(state.vectors.len()));
        }
        Ok(missing)
    }

    /// Notes a text that the model refuses.
    pub(crate) fn refuse(&self, key: u64) {
        self.write().refuse(key);
    }

    /// Keeps vectors. One of another length, or with invalid numbers, is refused. Blocks while the
    /// file is written; searches go on meanwhile.
    pub(crate) fn add(&self, vectors: Vec<(u64, Vec<f32>)>) -> io::Result<()> {
        let mut state = self.write();
        let mut rows = Vec::new();
        let is_first = state.vectors.is_empty();
        if is_first {
            let first = vectors.first().map_or(0, |(_, numbers)| numbers.len());
            state.length = first.min(MOST_NUMBERS);
            rows.extend_from_slice(&head(state.length));
        }
        for (key, numbers) in vectors {
            let is_sound = numbers.iter().all(|number| number.is_finite());
            if numbers.len() != state.length || state.length == 0 || !is_sound {
                // Otherwise its vector would be requested again and again.
                state.refuse(key);
                continue;
            }
            let vector = Vector::new(&numbers);
            rows.extend_from_slice(&key.to_le_bytes());
            rows.extend_from_slice(&vector.scale.to_le_bytes());
            rows.extend(vector.numbers.iter().map(|number| number.to_le_bytes()[0]));
            state.vectors.insert(key, vector);
        }
        let head = head(state.length);
        drop(state);
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(folder) = file.parent() {
            crate::cache::create_private(folder)?;
        }
        // Another process may have begun the file meanwhile.
        let begun = is_first && begins_with(file, &head).unwrap_or(false);
        let rows = if begun { &rows[head.len()..] } else { &rows[..] };
        let mut options = fs::OpenOptions::new();
        match is_first && !begun {
            true => options.create(true).write(true).truncate(true),
            false => options.create(true).append(true),
        };
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(file)?.write_all(rows)
    }

    /// The articles in a folder whose passages are nearest to a vector, nearest first.
    pub(crate) fn nearest(&self, asked: &[f32], folder: Option<&str>, most: usize) -> Vec<Near> {
        let state = self.read();
        let is_sound = asked.iter().all(|number| number.is_finite());
        if asked.len() != state.length || asked.is_empty() || !is_sound {
            return Vec::new();
        }
        let asked = Vector::new(asked);
        let inside = |path: &str| {
            let below = |folder| path.strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
            folder.is_none_or(below)
        };
        let articles = state.articles.iter().filter(|(path, _)| inside(path));
        let near = articles.filter_map(|(path, known)| {
            let vectors = known.passages.iter().filter_map(|(section, key)| {
                Some((*section, state.vectors.get(key)?.likeness(&asked)))
            });
            let (section, likeness) = vectors.max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(Near { path: path.clone(), section, likeness })
        });
        let mut near: Vec<Near> = near.collect();
        near.sort_unstable_by(|a, b| {
            b.likeness.total_cmp(&a.likeness).then_with(|| a.path.cmp(&b.path))
        });
        near.truncate(most);
        near
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vector {
    fn new(numbers: &[f32]) -> Self {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        let largest = numbers.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        let largest = largest.max(f32::MIN_POSITIVE);
        let whole = |number: &f32| (number / largest * 127.0).round() as i8;
        Self { scale: largest / length / 127.0, numbers: numbers.iter().map(whole).collect() }
    }

    /// The cosine of the angle between two vectors.
    fn likeness(&self, other: &Self) -> f32 {
        let pairs = self.numbers.iter().zip(&other.numbers);
        let sum: i32 = pairs.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        sum as f32 * self.scale * other.scale
    }
}

/// The texts of the passages of an article, with the numbers of their sections.
fn passages(stored: &Stored) -> Vec<(usize, Passage)> {
    let Stored { meta, sections, text, .. } = stored;
    let passage = |heading: &str, body: &str| {
        let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = shortened(&format!("{}\n{heading}\n{body}", meta.title), LONGEST_TEXT);
        Passage { key: xxh3_64(text.as_bytes()), text }
    };
    let all = (0..sections.len()).map(|at| (at, own_text(sections, text, at)));
    let long = all.filter(|(_, body)| body.len() >= SHORTEST_TEXT).take(MOST_PASSAGES);
    let mut found: Vec<_> =
        long.map(|(at, body)| (at, passage(&sections[at].title, body))).collect();
    if found.is_empty() {
        found.push((0, passage("", text)));
    }
    found
}

fn begins_with(file: &Path, head: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::new();
    fs::File::open(file)?.take(head.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == head)
}

/// The beginning of a file of vectors with this many numbers.
fn head(length: usize) -> Vec<u8> {
    [HEAD, &u32::try_from(length).unwrap_or(0).to_le_bytes()].concat()
}

/// Reads a file. An incomplete vector at its end is cut off.
fn open_file(file: &Path) -> Option<State> {
    let bytes = fs::read(file).ok()?;
    let (state, read) = read(&bytes)?;
    if read < bytes.len() {
        let shortened = fs::OpenOptions::new().write(true).open(file);
        shortened.and_then(|file| file.set_len(read as u64)).ok()?;
    }
    Some(state)
}

/// The vectors in a file, and how many of its bytes they take. An unknown file has none.
fn read(bytes: &[u8]) -> Option<(State, usize)> {
    let rest = bytes.strip_prefix(HEAD)?;
    let (length, mut rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let mut state = State { length, ..State::default() };
    while state.length > 0 && state.vectors.len() < MOST_VECTORS {
        let Some((key, after)) = rest.split_first_chunk::<8>() else { break };
        let Some((scale, after)) = after.split_first_chunk::<4>() else { break };
        let Some((numbers, after)) = after.split_at_checked(length) else { break };
        let numbers = numbers.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
        let vector = Vector { scale: f32::from_le_bytes(*scale), numbers };
        state.vectors.insert(u64::from_le_bytes(*key), vector);
        rest = after;
    }
    (length <= MOST_NUMBERS).then_some((state, bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_compared_by_their_angles_and_kept_in_the_file() {
        let home = tempfile::TempDir::new().unwrap();
        let open = || Vectors::open(Some(home.path()), Path::new("a"), "m");
        let vectors = open();
        vectors.add(vec![(1, vec![1.0, 0.0]), (2, vec![3.0, 3.0]), (3, vec![1.0])]).unwrap();
        vectors.add(vec![(4, vec![0.0, 0.1])]).unwrap();
        let file = vectors.file.clone().unwrap();
        for broken in [false, true] {
            if broken {
                let bytes = fs::read(&file).unwrap();
                fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
            }
            let read = open();
            let state = read.read();
            assert_eq!((state.length, state.vectors.len()), (2, if broken { 2 } else { 3 }));
            let likeness = state.vectors[&2].likeness(&state.vectors[&1]);
            assert!((likeness - 0.5_f32.sqrt()).abs() < 0.01, "{likeness}");
        }
        assert!(
            Vectors::open(Some(home.path()), Path::new("a"), "other").read().vectors.is_empty()
        );
        fs::write(&file, b"something else").unwrap();
        assert!(open().read().vectors.is_empty());
    }

    #[test]
    fn strange_vectors_do_no_harm() {
        let vectors = Vectors::open(None, Path::new("a"), "m");
        vectors.add(vec![(1, vec![0.0, 0.0]), (2, vec![f32::NAN, 1.0])]).unwrap();
        vectors.add(vec![(3, vec![f32::MAX, f32::MIN])]).unwrap();
        assert!(vectors.nearest(&[1.0, 1.0], None, 5).is_empty());
        assert!(vectors.nearest(&[1.0], None, 5).is_empty());
    }
}
