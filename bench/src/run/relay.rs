//! `sabir serve` between a client and an upstream, compared with the upstream alone and with other
//! gateways. The upstream is always the server of the benchmark, and a gateway shares its core. A
//! case names the way of the client, then the way to the upstream.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Run, Sample, Series, http, products, start, stdio};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::http::http_post;
use crate::process::{CommandLine, Process};
use crate::servers::{Kind, Server};

/// The bytes of a large result.
const LARGE: usize = 10_000_000;

/// Upstreams that are remembered and not running.
const COLD: usize = 10;

/// All ways through a relay.
pub(super) fn all(run: &mut Run<'_>) {
    let Some(ours) = run.ours() else { return };
    let upstream = match Process::start_http(run.cores, &ours.http_command(), &[]) {
        Ok(upstream) => upstream,
        Err(why) => return run.miss("sabir serve", "relay", &why),
    };
    let folder = match prepare(run, ours, upstream.1) {
        Ok(folder) => folder,
        Err(why) => return run.miss("sabir serve", "relay", &why),
    };
    let direct = Server { name: "direct".into(), kind: Kind::Floor, ..ours.clone() };
    let binary = Server { name: "sabir serve".into(), ..ours.clone() };
    let gateways = gateways(run, ours, upstream.1);
    for (front, back) in
        [("stdio", "stdio"), ("HTTP", "HTTP"), ("HTTP", "stdio"), ("stdio", "HTTP")]
    {
        let path = folder.path().join(back);
        for era in Era::ALL {
            let mut all = Vec::new();
            if front == "HTTP" {
                let job = http::job(era, Ask::Echo(50), 1);
                all.extend(http::series(run, &direct, &ours.http_command(), &job));
                let line = products::serve(run, &path);
                all.extend(http::series(run, &binary, &line, &job));
            } else {
                let alone = ours.command.and(&["stdio"]);
                all.extend(stdio::series(run, &direct, &alone, era, false));
                let line = on_stdio(run, &path);
                all.extend(stdio::series(run, &binary, &line, era, false));
            }
            // Others know the legacy era only, and change the transport.
            for (gateway, http, pipe) in gateways.iter().filter(|_| era == Era::Legacy) {
                all.extend(match (front, back) {
                    ("HTTP", "stdio") => {
                        let job = http::job(era, Ask::Echo(50), 1);
                        http::series(run, gateway, http, &job)
                    }
                    ("stdio", "HTTP") => stdio::series(run, gateway, pipe, era, false),
                    _ => None,
                });
            }
            run.case("relay", &format!("{}, {front}, {back}", era.name()), 0.0, all);
        }
    }
    let (cores, rounds) = (run.cores, run.schedule.starts);
    let mut all = Vec::new();
    for (server, path) in [(&direct, "large-alone"), (&binary, "large")] {
        let line = products::serve(run, &folder.path().join(path));
        match Process::start_http(cores, &line, &[]) {
            Ok(started) => all.push(Series::new(server, rounds, move || large(&started))),
            Err(why) => run.miss(&server.name, "10 MB result", &why),
        }
    }
    run.case("relay", "modern, HTTP, stdio, 10 MB result", 0.0, all);
    let line = on_stdio(run, &folder.path().join("cold"));
    let first = move || start::first_answer(cores, &line, Era::Modern);
    let series = vec![Series::new(&binary, rounds, first)];
    run.case("relay", "modern, stdio, `tools/list` of cold upstreams", 0.0, series);
}

/// `sabir serve` for a folder, on its standard streams.
fn on_stdio(run: &Run<'_>, folder: &Path) -> CommandLine {
    let serve = ["serve", &folder.to_string_lossy(), "--stdio"];
    CommandLine::new(&run.paths.programs.join("sabir"), &serve)
}

/// Creates a folder with a `sabir.toml` for each way to the upstream. What the upstreams offer is
/// remembered, so that the first call of a run finds its tool.
fn prepare(
    run: &Run<'_>,
    ours: &Server,
    upstream: SocketAddr,
) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path();
    let sabir = run.paths.programs.join("sabir");
    let alone = path.join("large-alone");
    let memory = path.join("memory");
    let reach = |line: &CommandLine| format!("run = {:?}", line.words());
    let relay = |reach: String| {
        format!("[[upstream]]\nname = \"up\"\nprefix = \"\"\nmemory = {memory:?}\n{reach}\n")
    };
    let large = format!(
        "[[command]]\nname = \"large\"\ndescription = \"Write much\"\nmax_output = \"16MB\"\n\
         run = [\"sh\", \"-c\", \"head -c {LARGE} /dev/zero | tr '\\\\0' x\"]\n"
    );
    let serve = ["serve", &alone.to_string_lossy(), "--stdio"];
    let cold = |nth| {
        let reach = reach(&ours.command.and(&["stdio"]));
        format!("[[upstream]]\nname = \"up{nth}\"\nmemory = {memory:?}\n{reach}\n")
    };
    for (name, text) in [
        ("large-alone", large),
        ("stdio", relay(reach(&ours.command.and(&["stdio"])))),
        ("HTTP", relay(format!("url = \"http://{upstream}/mcp\""))),
        ("large", relay(reach(&CommandLine::new(&sabir, &serve)))),
        ("cold", (0..COLD).map(cold).collect()),
    ] {
        configure(&path.join(name), &text).map_err(|error| error.to_string())?;
        let mut list = Command::new(&sabir);
        let listed = list.arg("list").arg(path.join(name)).output();
        let listed = listed.map_err(|error| error.to_string())?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).into_owned());
        }
    }
    Ok(folder)
}

fn configure(folder: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("sabir.toml"), text)
}

/// The other gateways, each in front of the upstream on stdio (up to its own address) and, on stdio,
/// in front of the upstream behind a URL.
fn gateways(
    run: &mut Run<'_>,
    ours: &Server,
    upstream: SocketAddr,
) -> Vec<(Server, CommandLine, CommandLine)> {
    let url = format!("http://{upstream}/mcp");
    let program = ours.command.and(&["stdio"]).words().join(" ");
    let folder = run.paths.peers.join("gateways");
    let node = run.paths.peers.join("bin/node").to_string_lossy().into_owned();
    let proxy = folder.join("venv/bin/mcp-proxy");
    let gateway = folder.join("node_modules/supergateway/dist/index.js");
    let (proxied, script) = (proxy.to_string_lossy(), gateway.to_string_lossy());
    let front = |line: String| {
        // The address is the last argument.
        CommandLine::new(Path::new("sh"), &["-c", &format!("exec {line}"), "sh"])
    };
    let all = [
        (
            "mcp-proxy",
            &proxy,
            front(format!("{proxied} --log-level ERROR --port ${{1##*:}} -- {program}")),
            CommandLine::new(
                &proxy,
                &["--log-level", "ERROR", "--transport", "streamablehttp", &url],
            ),
        ),
        (
            "supergateway",
            &gateway,
            front(format!(
                "{node} {script} --stdio '{program}' --outputTransport streamableHttp --stateful \
                 --logLevel none --port ${{1##*:}}"
            )),
            CommandLine::new(
                Path::new(&node),
                &[&script, "--streamableHttp", &url, "--logLevel", "none"],
            ),
        ),
    ];
    let mut found = Vec::new();
    for (name, file, http, pipe) in all {
        match file.exists() {
            true => {
                let server = Server { name: name.into(), kind: Kind::Peer, ..ours.clone() };
                found.push((server, http, pipe));
            }
            false => run.miss(name, "relay", "it is not installed (bench/peers/install gateways)"),
        }
    }
    found
}

/// The time of one large result, and the highest memory of the process that sent it so far.
fn large((process, address): &(Process, SocketAddr)) -> Result<Sample, String> {
    let ask = Ask::Call { tool: "large", arguments: "{}".into() };
    let headers = format!(
        "MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: large\r\n\
         Connection: close\r\n",
        Era::Modern.revision()
    );
    let request = http_post(*address, &headers, &ask.message(Era::Modern));
    let start = Instant::now();
    let fetch = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&request)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = fetch().map_err(|error: std::io::Error| error.to_string())?;
    let took = start.elapsed();
    if answer.len() < LARGE || !answer.starts_with(b"HTTP/1.1 200") {
        let begin: String = String::from_utf8_lossy(&answer).chars().take(200).collect();
        return Err(format!("{} bytes: {begin}", answer.len()));
    }
    let peak = process.peak() as f64;
    Ok(vec![(Measure::Ms, took.as_secs_f64() * 1e3), (Measure::Bytes, peak)])
}
