//! Measures how a store scales: generates a folder of articles and indexes it.
//!
//! ```text
//! cargo run --release -p sabir-articles --example articles_scale -- COUNT [FOLDER]
//! ```
//!
//! The folder is generated once (the same words for the same count) and kept; the index is built in
//! `FOLDER/.cache` and removed first. Figures go to stdout, one per line, so that they can be
//! compared and drawn.

#![allow(clippy::print_stdout, reason = "this program prints figures")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sabir_articles::{SearchOptions, Settings, Store};

/// The size of one article.
const BYTES: usize = 5 * 1024;

/// The number of different words.
const VOCABULARY: usize = 60_000;

/// The number of measured queries.
const QUESTIONS: usize = 4_000;

/// How long to wait for merging after a first index.
const MERGING: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error>;
type MakeQuery = fn(&mut Random, &Words) -> String;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = args.first().ok_or("usage: articles_scale COUNT [FOLDER]")?.parse()?;
    let home = args
        .get(1)
        .map_or_else(|| std::env::temp_dir().join(format!("sabir-scale-{count}")), PathBuf::from);
    let folder = home.join("articles");
    let settings = Settings { cache: Some(home.join(".cache")), ..Settings::new(&folder) };
    match args.get(2).map(String::as_str) {
        Some("index") => first_index(&settings, count),
        Some(_) => ask(&settings, count),
        None => {
            figure("articles", count as f64);
            if !folder.exists() {
                let start = Instant::now();
                generate(&folder, count, &Words::new())?;
                figure("generated_s", start.elapsed().as_secs_f64());
            }
            if home.join(".cache").exists() {
                fs::remove_dir_all(home.join(".cache"))?;
            }
            // Each in its own process, so that its memory can be measured.
            for phase in ["index", "ask"] {
                let me = std::env::current_exe()?;
                let status = Command::new(me).arg(&args[0]).arg(&home).arg(phase).status()?;
                if !status.success() {
                    return Err(format!("{phase}: {status}").into());
                }
            }
            Ok(())
        }
    }
}

fn ask(settings: &Settings, count: usize) -> Result<(), Failure> {
    memory("start");
    let store = reopen(settings)?;
    measure(&store, count, &Words::new())?;
    change_one(&store, &settings.folder)?;
    memory("end");
    store.close();
    Ok(())
}

fn figure(name: &str, value: f64) {
    println!("{name:32} {value:.3}");
}

fn first_index(settings: &Settings, count: usize) -> Result<(), Failure> {
    let start = Instant::now();
    let store = Store::open(settings.clone(), |_| {})?;
    while store.list(None, Some(1))?.total == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    figure("first_answers_s", start.elapsed().as_secs_f64());
    if !store.wait_ready(Duration::from_secs(1200)) {
        return Err("not indexed in twenty minutes".into());
    }
    figure("first_index_s", start.elapsed().as_secs_f64());
    figure("first_index_cpu_s", cpu_seconds());
    memory("indexed");
    // A slow machine may write more segments than are merged.
    let merging = Instant::now();
    while store.figures().segments > 3 && merging.elapsed() < MERGING {
        std::thread::sleep(Duration::from_millis(20));
    }
    figure("first_index_merged_s", start.elapsed().as_secs_f64());
    figure("first_index_merged_cpu_s", cpu_seconds());
    assert_eq!(store.figures().articles, count);
    memory("merged");
    store.close();
    Ok(())
}

fn reopen(settings: &Settings) -> Result<Store, Failure> {
    let start = Instant::now();
    let store = Store::open(settings.clone(), |_| {})?;
    while !store.wait_ready(Duration::from_secs(60)) {}
    figure("reopen_s", start.elapsed().as_secs_f64());
    figure("reopen_files_read", store.figures().files_read as f64);
    figure("on_disk", f64::from(u8::from(store.figures().on_disk)));
    figure("segments", store.figures().segments as f64);
    figure("index_mb", size_of(&settings.cache.clone().unwrap_or_default())? as f64 / 1e6);
    memory("reopened");
    Ok(store)
}

/// The bytes of everything in a folder.
fn size_of(folder: &Path) -> Result<u64, Failure> {
    let mut size = 0;
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let metadata = entry.metadata()?;
        size += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}

/// The kinds of queries, equally frequent. Phrases of common words are counted separately.
fn kinds() -> [(&'static str, MakeQuery); 8] {
    [
        ("one_word", |random, words| words.some(random, 20, VOCABULARY / 4).to_owned()),
        ("two_words", |random, words| {
            format!("{} {} ", words.some(random, 20, 5000), words.some(random, 20, 5000))
        }),
        ("question", |random, words| {
            let common: Vec<&str> = (0..3).map(|_| words.some(random, 0, 30)).collect();
            format!(
                "how do I {} {} {}?",
                common.join(" "),
                words.some(random, 50, 2000),
                words.some(random, 50, 2000)
            )
        }),
        ("phrase", |random, words| {
            // Words that are adjacent in some article.
            let text = article(random.below(1000), words).unwrap_or_default();
            let body: Vec<&str> =
                text.rsplit("---").next().unwrap_or_default().split(' ').collect();
            let at = random.below(body.len() - 2);
            format!("\"{} {}\"", body[at], body[at + 1])
        }),
        ("common_phrase", |random, words| {
            format!("\"{} {}\"", words.some(random, 0, 60), words.some(random, 0, 60))
        }),
        ("prefix", |random, words| {
            let word = words.some(random, 20, 5000);
            word[..word.len().min(3 + random.below(3))].to_owned()
        }),
        ("typo", |random, words| {
            let mut word = words.some(random, 20, 5000).to_owned();
            let at = 1 + random.below(word.len() - 1);
            word.replace_range(at..=at, "q");
            word
        }),
        ("nonsense", |random, _| format!("zqx{:x}wvk", random.next())),
    ]
}

fn measure(store: &Store, count: usize, words: &Words) -> Result<(), Failure> {
    let mut random = Random(7);
    let kinds = kinds();
    let mut all = Times::default();
    let mut by_kind: BTreeMap<&str, (Times, usize)> = BTreeMap::new();
    for round in 0..QUESTIONS + 200 {
        let (name, make) = kinds[round % kinds.len()];
        let query = make(&mut random, words);
        let (found, took) = timed(|| store.search(&query, SearchOptions::default()));
        let found = found?;
        // The first rounds warm the caches.
        if round >= 200 {
            if name != "common_phrase" {
                all.push(took);
            }
            let (times, hits) = by_kind.entry(name).or_default();
            times.push(took);
            *hits += usize::from(found.total > 0);
        }
    }
    all.print("search");
    for (name, (times, hits)) in by_kind {
        figure(&format!("search_{name}_answered"), hits as f64 / times.wall.len() as f64);
        times.print(&format!("search_{name}"));
    }
    let mut times = Times::default();
    for _ in 0..QUESTIONS {
        let id = id_of(random.below(count));
        let (article, took) = timed(|| store.article(&id, None));
        article?;
        times.push(took);
    }
    times.print("get");
    let mut times = Times::default();
    for _ in 0..200 {
        let (list, took) = timed(|| store.list(Some("category-3"), None));
        list?;
        times.push(took);
    }
    times.print("list");
    memory("asked");
    Ok(())
}

/// Changes one file and waits until a search finds the change.
fn change_one(store: &Store, folder: &Path) -> Result<(), Failure> {
    let read = store.figures().files_read;
    let path = folder.join(format!("{}.md", id_of(0)));
    let text = fs::read_to_string(&path)?;
    let word = format!("changed{}x", std::process::id());
    let start = Instant::now();
    fs::write(&path, format!("{text}\n\nNow it says {word}.\n"))?;
    while store.search(&word, SearchOptions::default())?.total == 0 {
        if start.elapsed() > Duration::from_secs(60) {
            return Err("the change was not seen in a minute".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    figure("change_visible_s", start.elapsed().as_secs_f64());
    figure("change_files_read", (store.figures().files_read - read) as f64);
    fs::write(&path, text)?;
    Ok(())
}

/// The wall-clock time and the CPU time of something.
fn timed<T>(work: impl FnOnce() -> T) -> (T, [Duration; 2]) {
    let (start, computed) = (Instant::now(), computing());
    let result = work();
    (result, [start.elapsed(), computing().saturating_sub(computed)])
}

/// The CPU time of this thread, which does not depend on the load of the machine.
fn computing() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Times {
    fn push(&mut self, [wall, cpu]: [Duration; 2]) {
        self.wall.push(wall);
        self.cpu.push(cpu);
    }

    fn print(mut self, name: &str) {
        for (times, of) in [(&mut self.wall, ""), (&mut self.cpu, "_cpu")] {
            times.sort_unstable();
            for (label, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
                let at = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len());
                figure(&format!("{name}{of}_{label}_ms"), times[at - 1].as_secs_f64() * 1e3);
            }
        }
    }
}

/// The memory of this process: private, mapped files, and peak.
fn memory(when: &str) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (key, label) in [("RssAnon", "own"), ("RssFile", "mapped"), ("VmHWM", "most")] {
        let line = status.lines().find(|line| line.starts_with(key));
        let kilobytes = line
            .and_then(|line| line.split_whitespace().nth(1))
            .and_then(|n| n.parse::<f64>().ok());
        figure(&format!("memory_{when}_{label}_mb"), kilobytes.unwrap_or(0.0) / 1024.0);
    }
}

/// The CPU time of this process, which does not depend on the load of the machine.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn id_of(number: usize) -> String {
    format!("category-{}/article-{number:06}", number % 10)
}

fn generate(folder: &Path, count: usize, words: &Words) -> Result<(), Failure> {
    for category in 0..10 {
        fs::create_dir_all(folder.join(format!("category-{category}")))?;
    }
    for number in 0..count {
        fs::write(folder.join(format!("{}.md", id_of(number))), article(number, words)?)?;
    }
    Ok(())
}

fn article(number: usize, words: &Words) -> Result<String, std::fmt::Error> {
    let mut random = Random(number as u64 + 1);
    let mut text = String::with_capacity(BYTES + 200);
    let (month, day) = (1 + random.below(12), 1 + random.below(28));
    writeln!(text, "---\ntitle: {}", words.sentence(&mut random, 3, 6))?;
    writeln!(text, "description: {}", words.sentence(&mut random, 8, 20))?;
    let tags: Vec<&str> =
        (0..1 + random.below(4)).map(|_| words.some(&mut random, 200, 1200)).collect();
    writeln!(
        text,
        "tags: [{}]\nstatus: Live\nlastUpdated: 2025-{month:02}-{day:02}\n---\n",
        tags.join(", ")
    )?;
    while text.len() < BYTES {
        writeln!(text, "## {}\n", words.sentence(&mut random, 2, 5))?;
        for _ in 0..1 + random.below(3) {
            for _ in 0..2 + random.below(4) {
                write!(text, "{}. ", words.sentence(&mut random, 6, 18))?;
            }
            text.push_str("\n\n");
        }
    }
    Ok(text)
}

/// Generated words with the frequencies of a natural language (Zipf's law).
struct Words {
    words: Vec<String>,
    sums: Vec<f64>,
}

impl Words {
    fn new() -> Self {
        let mut random = Random(42);
        let consonants = [
            "b", "c", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl",
        ];
        let vowels = ["a", "e", "i", "o", "u"];
        let endings = ["", "", "", "s", "ing", "ed", "er", "n"];
        let mut seen = std::collections::HashSet::new();
        let mut words = Vec::new();
        while words.len() < VOCABULARY {
            let syllables = 1 + words.len().min(3_000) / 1_000 + random.below(2);
            let mut word = String::new();
            for _ in 0..syllables {
                word.push_str(consonants[random.below(consonants.len())]);
                word.push_str(vowels[random.below(vowels.len())]);
            }
            word.push_str(endings[random.below(endings.len())]);
            if word.len() > 2 && seen.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        let sums = (0..VOCABULARY).map(|rank| {
            sum += 1.0 / (rank as f64 + 2.0);
            sum
        });
        Self { sums: sums.collect(), words }
    }

    fn next<'a>(&'a self, random: &mut Random) -> &'a str {
        let all = self.sums[VOCABULARY - 1];
        let at = random.next() as f64 / u64::MAX as f64 * all;
        &self.words[self.sums.partition_point(|sum| *sum < at).min(VOCABULARY - 1)]
    }

    /// One of the words between two ranks.
    fn some<'a>(&'a self, random: &mut Random, from: usize, to: usize) -> &'a str {
        &self.words[from + random.below(to - from)]
    }

    fn sentence(&self, random: &mut Random, least: usize, most: usize) -> String {
        let words: Vec<&str> =
            (0..least + random.below(most - least)).map(|_| self.next(random)).collect();
        let mut sentence = words.join(" ");
        sentence[..1].make_ascii_uppercase();
        sentence
    }
}

/// SplitMix64, a reproducible random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
