//! Commits changes of articles to the git repository that the folder is in.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sabir_supervisor::Supervisor;

use crate::command::{Finish, Program, RunError, run};

/// How long one run of git may take, its hooks included.
const TIME: Duration = Duration::from_secs(30);

/// The limit of git's output in bytes.
const OUTPUT: usize = 64 << 10;

/// How often git is run again while another process has locked the repository, and the pause
/// between.
const RETRIES: usize = 20;
const WAIT: Duration = Duration::from_millis(100);

/// The variables that git gets, if they are set: who commits, and where that is configured.
const VARIABLES: [&str; 9] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "LANG",
];

/// The git repository of a folder.
#[derive(Clone, Debug)]
pub struct Git {
    program: Program,
    supervisor: Supervisor,
}

impl Git {
    /// The repository that `folder`, an absolute path, is in. The error is for the operator.
    pub async fn open(
        program: PathBuf,
        folder: PathBuf,
        supervisor: Supervisor,
    ) -> Result<Self, String> {
        let mut program = Program::new(program, folder);
        let set = VARIABLES.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        program.env.extend(set);
        // File names are not patterns, and no prompt can be answered.
        let own = [("GIT_LITERAL_PATHSPECS", "1"), ("GIT_TERMINAL_PROMPT", "0")];
        program.env.extend(own.map(|(name, value)| (name.into(), value.into())));
        program.timeout = TIME;
        program.max_output = OUTPUT;
        let git = Self { program, supervisor };
        match git.run(&["rev-parse", "--is-inside-work-tree"], &[]).await {
            Ok(said) if said == "true" => Ok(git),
            _ => Err("the folder is in no git repository, so changes are not committed".to_owned()),
        }
    }

    /// Commits the current state of these files, relative to the folder; a missing one is removed.
    /// Other changes stay as they are. Returns the short hash of the commit.
    pub(super) async fn commit(&self, message: &str, files: &[String]) -> Result<String, String> {
        let mut known = Vec::new();
        for file in files {
            match self.run(&["add", "--all", "--"], std::slice::from_ref(file)).await {
                Ok(_) => known.push(file.clone()),
                // A file that was never committed, and is gone now.
                Err(_) if !self.program.cwd.join(file).exists() => {}
                Err(reason) => return Err(reason),
            }
        }
        self.run(&["commit", "--quiet", "--only", "-m", message, "--"], &known).await?;
        self.run(&["rev-parse", "--short", "HEAD"], &[]).await
    }

    /// Runs git, and returns its output.
    async fn run(&self, args: &[&str], files: &[String]) -> Result<String, String> {
        let args = args.iter().copied().chain(files.iter().map(String::as_str));
        let args: Vec<OsString> = args.map(Into::into).collect();
        let failed = |error: RunError| format!("git: {error}");
        for _ in 0..RETRIES {
            let finish = run(&self.supervisor, &self.program, args.clone(), None, None);
            let finish = finish.await.map_err(failed)?;
            match finish.success {
                true => return Ok(String::from_utf8_lossy(&finish.stdout).trim().to_owned()),
                false if is_locked(&finish) => tokio::time::sleep(WAIT).await,
                false => return Err(reason(&finish)),
            }
        }
        Err("git: another process has locked the repository".to_owned())
    }
}

fn is_locked(finish: &Finish) -> bool {
    String::from_utf8_lossy(&finish.stderr).contains("index.lock")
}

/// The reason of a failure in one line. Git writes some reasons to standard output.
fn reason(finish: &Finish) -> String {
    let said = [&finish.stderr, &finish.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let lines = said.iter().flat_map(|text| text.lines()).map(str::trim);
    let line = lines.filter(|line| !line.is_empty()).find(|line| !line.starts_with("hint:"));
    format!("git: {}", line.unwrap_or("failed without a reason"))
}
