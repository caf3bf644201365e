//! `sabir doctor`: what would keep a client from using its servers, with a fix for each finding.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::install::files;
use super::serve::ide;
use crate::clients::{ConfigFile, Places, Server, backup_of};
use crate::config;
use crate::report::{Failure, say};
use crate::shell;

/// The oldest version of Node that the usual servers run on.
const NODE: u32 = 18;

/// The address of `sabir serve`, unless its file has another one.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7331);

/// How long a server of this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run() -> Result<(), Failure> {
    let places = Places::of_this_user()?;
    let mut doctor = Doctor::default();
    for (client, scope, path) in files(&places) {
        let file = ConfigFile::read(client, path);
        let file = match file {
            Ok(file) if file.exists() => file,
            Ok(_) => continue,
            Err(failure) => {
                doctor.find(&failure.to_string(), "make the file readable");
                continue;
            }
        };
        match file.servers() {
            Ok(mut servers) => {
                servers.extend(places.local_servers(&file, scope));
                doctor.checked += servers.len();
                for server in &servers {
                    let scope = server.scope_word(scope);
                    let place = format!("{} ({scope}) `{}`", client.name(), server.name);
                    doctor.check_server(&place, server);
                }
            }
            Err(failure) => doctor.find(&failure.to_string(), "correct the file at that place"),
        }
        let backup = backup_of(file.path());
        if backup.exists() && !file.servers().is_ok_and(|all| all.iter().any(Server::is_ours)) {
            let what = format!("{} is left over", backup.display());
            doctor.find(&what, &removal(&backup));
        }
    }
    doctor.check_node();
    doctor.check_address();
    for lock in ide::stale_locks() {
        let what = format!("{} is the lock file of an editor that is gone", lock.display());
        doctor.find(&what, &removal(&lock));
    }
    say(&format!("checked {} servers of clients, {} findings", doctor.checked, doctor.findings));
    match doctor.findings {
        0 => Ok(()),
        _ => Err(Failure::Silent),
    }
}

#[derive(Default)]
struct Doctor {
    checked: usize,
    findings: usize,
    uses_node: bool,
}

impl Doctor {
    fn find(&mut self, what: &str, fix: &str) {
        self.findings += 1;
        say(&format!("problem: {what}\n  fix: {fix}"));
    }

    fn check_server(&mut self, place: &str, server: &Server) {
        if let Some(url) = server.url() {
            if is_silent(url) {
                let fix = "start the server, e.g. with sabir serve, or remove the entry";
                self.find(&format!("{place}: nothing listens at {url}"), fix);
            }
            return;
        }
        let Some(line) = server.line() else { return };
        let program = Path::new(&line[0]);
        self.uses_node |= ["npx", "node", "npm"].iter().any(|name| program.ends_with(name));
        let is_there = match program.components().count() {
            1 => in_path(program),
            _ => program.is_file(),
        };
        if !is_there {
            let fix = match server.is_ours() {
                true => "install it again: sabir install CLIENT PATH".to_owned(),
                false => format!("install {}, or remove the entry", program.display()),
            };
            self.find(&format!("{place}: there is no program {}", program.display()), &fix);
        } else if server.is_ours() {
            let served = line.iter().skip_while(|word| *word != "serve").nth(1);
            let Some(served) = served.filter(|path| !path.starts_with('-')) else { return };
            if let Err(mistakes) = config::read(Some(Path::new(served)), false) {
                let first = mistakes.to_string().lines().next().unwrap_or_default().to_owned();
                let fix = format!("see all of it with: sabir check {served}");
                self.find(&format!("{place}: {}", first.trim_start_matches("error: ")), &fix);
            }
        }
    }

    fn check_node(&mut self) {
        if !self.uses_node {
            return;
        }
        let output = Command::new("node").arg("--version").stdin(Stdio::null()).output();
        let Ok(output) = output else {
            self.find("servers need Node, and there is no program node", "install Node 22");
            return;
        };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let major = version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
        if major.is_some_and(|major: u32| major < NODE) {
            self.find(
                &format!("Node {version} is too old for most servers (expected {NODE} or newer)"),
                "install Node 22",
            );
        }
    }

    /// The address on which `sabir serve` would listen here.
    fn check_address(&mut self) {
        let here = config::read(None, false).ok().filter(|settings| settings.listens_http);
        let address = here.map_or(ADDRESS, |settings| settings.http.address);
        if let Err(error) = TcpListener::bind(address)
            && !is_sabir(address)
        {
            self.find(
                &format!("{address} cannot be used by sabir serve: {error}"),
                &format!("use another port: sabir serve --http {}", address.port().wrapping_add(1)),
            );
        }
    }
}

fn removal(path: &Path) -> String {
    format!("remove it: rm {}", shell::quoted(&path.to_string_lossy()))
}

/// Whether a URL names a port of this machine that refuses connections.
fn is_silent(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    if !["localhost", "127.0.0.1", "::1"].contains(&host) {
        return false;
    }
    let addresses = (host, port).to_socket_addrs().into_iter().flatten();
    let mut addresses = addresses.filter(|address| address.ip().is_loopback());
    !addresses.any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

/// Whether Sabir itself has the address.
fn is_sabir(address: SocketAddr) -> bool {
    let answer = TcpStream::connect_timeout(&address, PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4096).read_to_string(&mut answer)?;
        Ok(answer)
    });
    answer.is_ok_and(|answer| answer.ends_with("{\"status\":\"ok\"}"))
}

fn in_path(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
