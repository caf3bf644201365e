//! `sabir-bench [--quick] [--only NAME,…] [--part PART]` measures. `sabir-bench plot` rewrites the page
//! and its plots from the stored figures; `sabir-bench plot-articles FILE…` draws the growth of an
//! index of articles. `cargo xtask bench` builds all programs and runs this one.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing figures is its job")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use sabir_bench::figures::Figures;
use sabir_bench::process::{Cores, raise_file_limit};
use sabir_bench::run::{Part, Run, Schedule};
use sabir_bench::servers::{Kind, Paths, Server, servers};
use sabir_bench::{machine, plots, report, text};

const USAGE: &str = "\
usage: sabir-bench [--quick] [--only NAME,…] [--part PART]
       sabir-bench plot-articles FILE…
       sabir-bench plot";

/// The peer that a quick run measures.
const QUICK_PEER: &str = "rmcp-tuned";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["plot-articles", files @ ..] if !files.is_empty() => plot_articles(files),
        ["plot"] => draw_again(),
        options => match Options::read(options) {
            Some(options) => measure(&options),
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The options of a run.
struct Options {
    quick: bool,
    /// The servers; empty means all.
    only: Vec<String>,
    /// The part; `None` means all.
    part: Option<Part>,
}

impl Options {
    fn read(words: &[&str]) -> Option<Self> {
        let mut options = Self { quick: false, only: Vec::new(), part: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options.quick = true,
                "--only" => options.only = words.next()?.split(',').map(str::to_owned).collect(),
                "--part" => {
                    let name = words.next()?;
                    let (_, part) = Part::ALL.into_iter().find(|(known, _)| known == name)?;
                    options.part = Some(part);
                }
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(&self, server: &Server) -> bool {
        if !self.only.is_empty() {
            return self.only.contains(&server.name);
        }
        !self.quick || server.kind != Kind::Peer || server.name == QUICK_PEER
    }

    fn command(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        format!("cargo xtask bench{quick}")
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let paths = Paths::find()?;
    let (mut servers, missing) = servers(&paths)?;
    if let Some(unknown) =
        options.only.iter().find(|name| servers.iter().all(|known| known.name != **name))
    {
        return Err(format!("server `{unknown}` is unknown or not installed"));
    }
    servers.retain(|server| options.wants(server));
    if options.only.is_empty() && !options.quick {
        for line in &missing {
            println!("not measured: {line}");
        }
    }
    let mut machine = machine::detect();
    if let Some(load) = machine::load_average().filter(|load| *load >= 1.0) {
        println!("warning: the machine is busy (load average {load}): rates are unreliable");
    }
    raise_file_limit();
    let cores = Cores::split();
    machine.split = cores.count_if_split().is_some();
    if !machine.split {
        println!("there is only one core: servers and the load generator share it");
    }
    let start = Instant::now();
    let mut print = |line: &str| println!("{line}");
    let mut run = Run::new(&paths, &servers, cores, Schedule::new(options.quick), &mut print);
    for (_, part) in Part::ALL {
        if options.part.is_none_or(|wanted| wanted == part) {
            run.part(part);
        }
    }
    let missing = [missing, run.missing].concat();
    let figures = Figures {
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command: options.command(),
        machine,
        servers: servers.iter().map(|one| (one.name.clone(), one.about.clone())).collect(),
        missing,
        figures: run.figures,
    };
    print!("{}", report::summary(&figures));
    println!("\n{} s", start.elapsed().as_secs());
    let is_full = !options.quick && options.only.is_empty() && options.part.is_none();
    if is_full { publish(&paths.root, &figures) } else { Ok(()) }
}

/// Rewrites the stored figures, the page and its plots.
fn publish(root: &Path, figures: &Figures) -> Result<(), String> {
    let json = serde_json::to_string_pretty(figures).map_err(|error| error.to_string())?;
    write(&root.join("bench/figures.json"), &format!("{json}\n"))?;
    let page = root.join("docs/performance.md");
    let old = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let tables = report::markdown(figures);
    let new = text::replace_between(&old, report::BEGIN, report::END, &tables);
    let marks = (report::BEGIN, report::END);
    let new =
        new.ok_or_else(|| format!("{}: marks not found (expected {marks:?})", page.display()));
    let new = new?;
    write(&page, &new)?;
    let folder = root.join("docs/performance");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for (name, drawing) in plots::all(figures)? {
        write(&folder.join(name), &drawing)?;
    }
    println!("written: bench/figures.json, docs/performance.md, docs/performance/*.svg");
    Ok(())
}

/// Rewrites the page and its plots from the stored figures.
fn draw_again() -> Result<(), String> {
    let paths = Paths::find()?;
    let json = fs::read_to_string(paths.root.join("bench/figures.json"));
    let json = json.map_err(|error| format!("bench/figures.json: {error}"))?;
    let figures = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    publish(&paths.root, &figures)
}

fn plot_articles(files: &[&str]) -> Result<(), String> {
    let read = |file: &&str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let outputs: Vec<String> = files.iter().map(read).collect::<Result<_, _>>()?;
    let drawing = plots::articles(&outputs)?;
    write(&Paths::find()?.root.join("docs/articles-growth.svg"), &drawing)?;
    println!("written: docs/articles-growth.svg");
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
