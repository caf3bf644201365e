//! `sabir doctor`: what would keep a client from using its servers, with a fix for each finding.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use super::install::files;
use crate::clients::{ConfigFile, Places, Server, backup_of};
use crate::config;
use crate::report::{Failure, say};

/// The oldest version of Node that the usual servers run on.
const NODE: u32 = 18;

/// The port of `sabir serve`.
const PORT: u16 = 7331;

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
            Ok(servers) => {
                doctor.checked += servers.len();
                for server in &servers {
                    let place = format!("{} ({}) `{}`", client.name(), scope.word(), server.name);
                    doctor.check_server(&place, server);
                }
            }
            Err(failure) => doctor.find(&failure.to_string(), "correct the file at that place"),
        }
        let backup = backup_of(file.path());
        if backup.exists() && !file.servers().is_ok_and(|all| all.iter().any(Server::is_ours)) {
            let what = format!("{} is left over", backup.display());
            doctor.find(&what, &format!("remove it: rm {}", backup.display()));
        }
    }
    doctor.check_node();
    doctor.check_port();
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
        let Some(line) = server.line() else { return };
        let program = Path::new(&line[0]);
        self.uses_node |= ["npx", "node", "npm"].iter().any(|name| program.ends_with(name));
        let is_there = match program.components().count() {
            1 => in_path(program),
            _ => program.is_file(),
        };
        if !is_there {
            let fix = match server.is_ours() {
                true => "install it again: sabir install".to_owned(),
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

    fn check_port(&mut self) {
        if let Err(error) = TcpListener::bind(("127.0.0.1", PORT)) {
            self.find(
                &format!("port {PORT} of this machine cannot be used: {error}"),
                "if it is not Sabir, use another port: sabir serve --http 7332",
            );
        }
    }
}

fn in_path(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
