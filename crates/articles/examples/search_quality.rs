//! Measures the search on real folders: `cargo xtask search-quality --corpus DIR`.
//!
//! DIR has one folder for each name in the first column of `quality/questions.tsv`. Prints, for each
//! folder and in all, how often an acceptable page is first, among the first five and among the first
//! ten, and the mean reciprocal rank, beside SQLite FTS5 (Python's `sqlite3`); how long a search takes;
//! and how many links between pages can be followed, as they are written and as they are returned.
//!
//! The questions were written before any result was seen. The unseen half is for the last measurement,
//! so its misses are never printed.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for the terminal")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use sabir_articles::{ArticleUris, ReadOptions, SearchOptions, Settings, Store};

/// The ranks that are looked at.
const DEPTH: i64 = 10;

struct Question<'a> {
    half: &'a str,
    text: &'a str,
    pages: &'a str,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut corpus, mut half, mut misses) = (None, "all".to_owned(), false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--corpus" => corpus = args.next().map(PathBuf::from),
            "--half" => half = args.next().unwrap_or_default(),
            "--misses" => misses = true,
            other => panic!("unknown option `{other}`"),
        }
    }
    let corpus = corpus.expect("--corpus DIR");
    let quality = Path::new(env!("CARGO_MANIFEST_DIR")).join("quality");
    let text = std::fs::read_to_string(quality.join("questions.tsv")).unwrap();
    let mut folders: BTreeMap<&str, Vec<Question<'_>>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [folder, of_half, text, pages] = columns[..] else { panic!("four columns: {line}") };
        folders.entry(folder).or_default().push(Question { half: of_half, text, pages });
    }
    println!(
        "| folder | pages | questions | first | in 5 | in 10 | MRR | p50 | FTS5: first | in 5 | in 10 | MRR |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut all = (Vec::new(), Vec::new(), Vec::new());
    let mut pages = 0;
    let mut links = Vec::new();
    for (folder, mut questions) in folders {
        questions.retain(|question| half == "all" || question.half == half);
        let path = corpus.join(folder);
        let (count, ours, times, followed) = ours(&path, &questions, misses);
        links.push((folder, followed));
        let theirs = fts5(&quality, &path, &questions);
        row(folder, count, &ours, &times, &theirs);
        pages += count;
        all.0.extend(ours);
        all.1.extend(times);
        all.2.extend(theirs);
    }
    row("all", pages, &all.0, &all.1, &all.2);
    println!("\n| folder | links between pages | followed as written | as returned |");
    println!("|---|---:|---:|---:|");
    for (folder, Followed { links, written, returned }) in links {
        let share = |count: usize| 100.0 * count as f64 / links.max(1) as f64;
        println!("| {folder} | {links} | {:.1} % | {:.1} % |", share(written), share(returned));
    }
}

/// Links that lead to a page.
#[derive(Default)]
struct Followed {
    links: usize,
    written: usize,
    returned: usize,
}

/// Follows the links of some pages, at most about a thousand of each folder.
fn follow(store: &Store, misses: bool) -> Followed {
    let ids = store.ids();
    let mut followed = Followed::default();
    for id in ids.iter().step_by(ids.len().div_ceil(1000).max(1)) {
        let raw = store.article(id, None).unwrap().content;
        let options = ReadOptions { uris: Some(ArticleUris::default()), ..ReadOptions::default() };
        let returned = store.read(id, &options).unwrap().content;
        for (written, returned) in links(&raw).into_iter().zip(links(&returned)) {
            if !is_between_pages(&written, id) {
                continue;
            }
            let leads = |link: &str| store.article(link, None).is_ok();
            followed.links += 1;
            followed.written += usize::from(leads(&written));
            followed.returned += usize::from(leads(&returned));
            if misses && !leads(&returned) {
                println!("{id}: {written}");
            }
        }
    }
    followed
}

fn links(text: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_WIKILINKS | Options::ENABLE_FOOTNOTES;
    let links = Parser::new_ext(text, options).filter_map(|event| match event {
        Event::Start(Tag::Link { link_type: LinkType::WikiLink { .. }, dest_url, .. }) => {
            Some(format!("[[{dest_url}]]"))
        }
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    links.collect()
}

/// Whether a link is meant to lead to a page of the same folder: not to another site, another section of
/// the page, a file that is not a page, or out of the folder.
fn is_between_pages(link: &str, from: &str) -> bool {
    let link = link.trim_start_matches("[[").trim_end_matches("]]");
    let path = link.split(['#', '?']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_page = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 5 && !ending.contains(' ') => {
            ["md", "mdx", "html", "markdown"].contains(&ending)
        }
        _ => true,
    };
    let ups = path.split('/').filter(|part| *part == "..").count();
    !path.is_empty()
        && !link.contains("://")
        && !link.starts_with("//")
        && !["mailto:", "tel:", "obsidian:"].iter().any(|scheme| link.starts_with(scheme))
        && is_page
        && ups <= from.matches('/').count()
}

/// The number of pages, and for each question its rank (0: not found) and how long the search took.
fn ours(
    folder: &Path,
    questions: &[Question<'_>],
    misses: bool,
) -> (usize, Vec<usize>, Vec<Duration>, Followed) {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/search-quality");
    let settings = Settings { watch: false, cache: Some(cache), ..Settings::new(folder) };
    let store = Store::open(settings, |_| {}).unwrap();
    assert!(store.wait_ready(Duration::from_secs(600)), "the folder is not indexed");
    let mut ranks = Vec::new();
    let mut times = Vec::new();
    for question in questions {
        let options = SearchOptions { limit: Some(DEPTH), ..SearchOptions::default() };
        // Once for the caches of the system, then measured.
        store.search(question.text, options.clone()).unwrap();
        let started = Instant::now();
        let found = store.search(question.text, options).unwrap();
        times.push(started.elapsed());
        let ids: Vec<&str> = found.hits.iter().map(|hit| hit.summary.id.as_str()).collect();
        let accepted = |id: &&str| question.pages.split('|').any(|page| page == *id);
        let rank = ids.iter().position(accepted).map_or(0, |at| at + 1);
        if misses && rank != 1 && question.half == "seen" {
            println!(
                "{rank:>2} {}\n     wanted {}\n     {}",
                question.text,
                question.pages,
                ids[..ids.len().min(6)].join("\n     ")
            );
        }
        ranks.push(rank);
    }
    let pages = store.figures().articles;
    let followed = follow(&store, misses);
    store.close();
    (pages, ranks, times, followed)
}

fn fts5(quality: &Path, folder: &Path, questions: &[Question<'_>]) -> Vec<usize> {
    let mut python = Command::new("python3")
        .arg(quality.join("fts5.py"))
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3, for SQLite FTS5");
    let mut input = python.stdin.take().unwrap();
    for question in questions {
        writeln!(input, "{}\t{}", question.text, question.pages).unwrap();
    }
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "fts5.py failed");
    let ranks: Vec<usize> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(ranks.len(), questions.len());
    ranks
}

fn row(name: &str, pages: usize, ours: &[usize], times: &[Duration], theirs: &[usize]) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
    println!(
        "| {name} | {pages} | {} | {} | {:.2} ms | {} |",
        ours.len(),
        figures(ours),
        p50.as_secs_f64() * 1000.0,
        figures(theirs)
    );
}

fn figures(ranks: &[usize]) -> String {
    let within = |most: usize| ranks.iter().filter(|&&rank| (1..=most).contains(&rank)).count();
    let share = |most: usize| {
        format!(
            "{} ({:.0} %)",
            within(most),
            100.0 * within(most) as f64 / ranks.len().max(1) as f64
        )
    };
    let reciprocal = |&rank: &usize| if rank == 0 { 0.0 } else { 1.0 / rank as f64 };
    let mrr = ranks.iter().map(reciprocal).sum::<f64>() / ranks.len().max(1) as f64;
    format!("{} | {} | {} | {mrr:.3}", share(1), share(5), share(10))
}
