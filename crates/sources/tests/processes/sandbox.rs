use std::fs;
use std::path::Path;
use std::process::Command;

use sabir_sources::command::{Files, Finish, Limit, Limits, Program, RunError, Sandbox, run};
use sabir_supervisor::{Exit, StartError};

use super::stops::enforced;
use super::{PLAY, script, shell, supervisor};

async fn call(program: &Program, shell: &str) -> Finish {
    run(&supervisor(), program, script(shell), None, None).await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

#[tokio::test]
async fn limits_are_applied() {
    let mut program = shell("/");
    program.limits =
        Limits { memory: Some(512 << 20), cpu_seconds: Some(7), file_size: Some(1 << 20) };
    let finish = call(&program, "ulimit -v; ulimit -t; ulimit -Ht; ulimit -f; ulimit -c").await;
    assert_eq!(text(&finish.stdout), "524288\n7\n8\n2048\n0");
}

#[tokio::test]
async fn exceeding_the_cpu_time_and_the_file_size_is_reported() {
    let mut program = shell("/");
    program.limits.cpu_seconds = Some(1);
    let finish = call(&program, "while :; do :; done").await;
    assert_eq!((finish.success, finish.limit), (false, Some(Limit::Cpu)));

    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::new("/bin/dd".into(), folder.path().into());
    program.limits.file_size = Some(1000);
    let args = ["if=/dev/zero", "of=large", "bs=100", "count=11"].map(Into::into).to_vec();
    let finish = run(&supervisor(), &program, args, None, None).await.unwrap();
    assert_eq!((finish.success, finish.limit), (false, Some(Limit::FileSize)));
    assert_eq!(fs::metadata(folder.path().join("large")).unwrap().len(), 1000);
}

/// Three folders with a file each: readable, writable, and inaccessible.
fn folders() -> (tempfile::TempDir, Program) {
    let folder = tempfile::tempdir().unwrap();
    let [read, write, secret] = ["read", "write", "secret"].map(|name| folder.path().join(name));
    for path in [&read, &write, &secret] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "content").unwrap();
    }
    let mut program = shell(folder.path().to_str().unwrap());
    program.sandbox = Some(Sandbox {
        files: Some(Files { read: vec![read], write: vec![write] }),
        ..Sandbox::default()
    });
    (folder, program)
}

#[tokio::test]
async fn only_the_listed_files_are_accessible() {
    if !enforced().await {
        return;
    }
    let (folder, program) = folders();
    for (attempt, allowed) in [
        ("cat read/file", true),
        ("ls read", true),
        ("cat write/file", true),
        (
            "echo x > write/new && mkdir write/folder && mv write/new write/folder && rm -r write/folder",
            true,
        ),
        ("echo x > write/file", true),
        ("echo x > /dev/null", true),
        ("cat secret/file", false),
        ("ls secret", false),
        ("ls .", false),
        ("echo x > secret/new", false),
        ("echo x > read/new", false),
        ("echo x >> read/file", false),
        ("truncate -s 0 read/file", false),
        ("rm read/file", false),
        ("mv write/file read/moved", false),
        ("ln write/file read/linked", false),
        ("cat /etc/passwd", false),
        ("cat write/../secret/file", false),
        ("ln -s ../secret write/link; cat write/link/file", false),
        ("cat /proc/self/status", false),
    ] {
        let finish = call(&program, attempt).await;
        assert_eq!(finish.success, allowed, "{attempt}: {}", text(&finish.stderr));
    }
    for name in ["read", "secret"] {
        assert_eq!(fs::read_to_string(folder.path().join(name).join("file")).unwrap(), "content");
    }
}

#[tokio::test]
async fn descendants_are_in_the_sandbox_too() {
    if !enforced().await {
        return;
    }
    let (_folder, program) = folders();
    let finish =
        call(&program, "setsid sh -c 'cat secret/file' | cat; env -i cat secret/file").await;
    assert_eq!((finish.success, text(&finish.stdout)), (false, ""));
}

#[tokio::test]
async fn if_the_sandbox_cannot_be_applied_the_program_is_not_started() {
    if !enforced().await {
        return;
    }
    let (folder, mut program) = folders();
    let missing = folder.path().join("none");
    program.sandbox.as_mut().unwrap().files.as_mut().unwrap().read.push(missing.clone());
    let refused = run(&supervisor(), &program, script("echo it ran"), None, None).await;
    match refused {
        Err(RunError::Sandbox(why)) => assert!(why.contains(missing.to_str().unwrap()), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_landlock_the_program_is_not_started() {
    let output = Command::new(PLAY).arg("without-landlock").output().unwrap();
    let report = text(&output.stdout);
    assert!(report.starts_with("Err(Sandbox("), "{report}");
    assert!(report.contains("Landlock"), "{report}");
}

#[tokio::test]
async fn a_missing_program_is_reported_in_a_sandbox_too() {
    let (_folder, mut program) = folders();
    for (path, file) in [("/no/such", None), ("/etc/passwd", Some("/etc/passwd"))] {
        program.path = path.into();
        program.sandbox = None;
        program.limits.file_size = Some(1 << 30);
        match run(&supervisor(), &program, vec![], None, None).await {
            Err(RunError::Start(StartError::NoProgram(named))) => {
                assert_eq!((&*named, file), (Path::new(path), None))
            }
            Err(RunError::Start(StartError::NotExecutable(named))) => {
                assert_eq!(Some(&*named), file.map(Path::new))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_program_cannot_pretend_that_it_was_not_started() {
    if !enforced().await {
        return;
    }
    let (_folder, program) = folders();
    let finish = call(&program, "echo 0123456789abcdef no sandbox >&2; exit 125").await;
    assert_eq!(finish.exit, Some(Exit::Code(125)));
}

#[tokio::test]
async fn a_program_in_a_sandbox_cannot_kill_its_monitor() {
    let kill = "kill -9 $PPID && echo killed; echo alive";
    let mut program = shell("/");
    match run(&supervisor(), &program, script(kill), None, None).await {
        Err(RunError::MonitorLost) => {}
        other => panic!("without a sandbox it can: {other:?}"),
    }
    if !enforced().await {
        return;
    }
    program.sandbox = Some(Sandbox::default());
    let finish = call(&program, kill).await;
    assert_eq!((finish.exit, text(&finish.stdout)), (Some(Exit::Code(0)), "alive"));
}
