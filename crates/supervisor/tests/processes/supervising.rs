use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, getsid, kill_process};
use sabir_supervisor::{Exit, StartError, StartRequest, Supervisor, SupervisorSettings, WaitError};

use super::{PLAY, SOON, alive, line, sh, soon, stat, supervisor, token};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The monitor of a program, and the supervisor process above it.
fn above(pid: i32) -> (i32, i32) {
    let (monitor, _) = stat(pid).unwrap();
    let (root, _) = stat(monitor).unwrap();
    (monitor, root)
}

const LOOP: &str = "echo ready; while :; do sleep 0.01; done";

#[tokio::test]
async fn a_program_that_cannot_be_started_fails_with_the_reason() {
    let supervisor = supervisor();
    let start = async |change: fn(&mut StartRequest)| {
        let mut request = sh("exit 0", "x");
        change(&mut request);
        supervisor.start(&request).await.unwrap_err().to_string()
    };
    assert_eq!(start(|o| o.program = "/no/such".into()).await, "program not found: /no/such");
    assert_eq!(start(|o| o.program = "/etc/passwd".into()).await, "/etc/passwd is not executable");
    assert_eq!(start(|o| o.cwd = "/no/such".into()).await, "working directory not found: /no/such");
    assert_eq!(
        start(|o| o.cwd = "/etc/passwd".into()).await,
        "working directory not found: /etc/passwd"
    );
    assert_eq!(start(|o| o.program = "sh".into()).await, "sh is not an absolute path");
    assert_eq!(start(|o| o.cwd = ".".into()).await, ". is not an absolute path");
    let nul = "an argument or an environment variable contains a NUL byte";
    assert_eq!(start(|o| o.args = vec!["a\0b".into()]).await, nul);
    let large = "the arguments and the environment are larger than the system allows";
    assert_eq!(start(|o| o.args.push("x".repeat(131_072).into())).await, large);
    assert_eq!(start(|o| o.args.push("x".repeat(9 << 20).into())).await, large);
    // The supervisor still works.
    assert_eq!(supervisor.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
    let longest = "x".repeat(131_071);
    let mut request = sh("exit ${#1}", "x");
    request.args.push(longest.into());
    request.args[1] = "exit $((${#1} == 131071))".into();
    assert_eq!(supervisor.start(&request).await.unwrap().wait().await, Ok(Exit::Code(1)));
}

#[tokio::test]
async fn no_more_programs_run_than_the_limit() {
    let settings =
        SupervisorSettings { executable: PLAY.into(), max_children: 2, ..Default::default() };
    let supervisor = Supervisor::new(settings);
    let request = sh("read x", "x");
    let first = supervisor.start(&request).await.unwrap();
    let _second = supervisor.start(&request).await.unwrap();
    assert!(matches!(supervisor.start(&request).await, Err(StartError::Full(2))));
    drop(first);
    supervisor.start(&request).await.unwrap();
}

#[tokio::test]
async fn no_signal_to_sabirs_group_terminal_or_name_reaches_a_monitor() {
    let supervisor = supervisor();
    let child = supervisor.start(&sh("read x", "x")).await.unwrap();
    let (monitor, root) = above(child.pid().unwrap());
    let pid = |pid| Pid::from_raw(pid);
    assert_eq!(getsid(pid(root)).ok(), pid(root));
    assert_eq!(getsid(pid(monitor)).ok(), pid(root));
    assert_eq!(getpgid(pid(monitor)).ok(), pid(monitor));
    for process in [monitor, root] {
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        assert_eq!(read("comm"), "supervisor\n");
        let name = format!("supervisor of {}\0", std::process::id());
        assert!(read("cmdline").starts_with(&name), "{}", read("cmdline"));
        assert_eq!(read("environ"), "SABIR_SUPERVISOR=1\0");
        assert_eq!(fs::read_link(format!("/proc/{process}/cwd")).unwrap(), Path::new("/"));
        // Its socket is the only descriptor of ours that it holds, so that a reader of our output
        // sees its end.
        for stream in [1, 2] {
            let open = fs::read_link(format!("/proc/{process}/fd/{stream}")).unwrap();
            assert_eq!(open, Path::new("/dev/null"));
        }
    }
}

#[tokio::test]
async fn a_monitor_is_reused_if_its_program_exited_by_itself() {
    let supervisor = supervisor();
    let mut used = Vec::new();
    for stop in [false, false, true, false] {
        let mut child = supervisor.start(&sh("read x", "x")).await.unwrap();
        used.push(above(child.pid().unwrap()));
        child.stdin = None;
        if stop {
            child.stop();
        }
        child.wait().await.unwrap();
    }
    assert_eq!(used[0], used[1]);
    assert_eq!(used[1], used[2]);
    assert_ne!(used[2].0, used[3].0, "a monitor that stopped its program has exited");
    assert_eq!(used[2].1, used[3].1, "there is one supervisor process");
}

#[tokio::test]
async fn close_stops_every_program_and_waits() {
    let token = token();
    let supervisor = supervisor();
    let mut children = Vec::new();
    for _ in 0..3 {
        let script = format!("trap '' TERM; (setsid sleep 1000.$0 &); {LOOP}");
        let mut child = supervisor.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        children.push(child);
    }
    let (_, root) = above(children[0].pid().unwrap());
    assert!(supervisor.close(SOON).await);
    assert_eq!(alive(&token), [""; 0]);
    assert!(stat(root).is_none(), "the supervisor process has exited, and is not a zombie");
    assert_eq!(children[0].wait().await, Ok(Exit::Signal(9)));
    assert!(matches!(supervisor.start(&sh("exit 0", "x")).await, Err(StartError::Closed)));
    supervisor.close(SOON).await;
}

#[tokio::test]
async fn close_does_not_wait_longer_than_its_timeout() {
    let supervisor = supervisor();
    let child = supervisor.start(&sh("read x", "x")).await.unwrap();
    let (monitor, root) = above(child.pid().unwrap());
    kill(monitor, Signal::STOP); // as if its program was blocked in the kernel
    assert!(!supervisor.close(Duration::from_millis(100)).await);
    kill(monitor, Signal::CONT);
    soon("both have exited", || stat(monitor).is_none() && stat(root).is_none()).await;
}

#[tokio::test]
async fn a_dropped_supervisor_exits_by_itself() {
    let supervisor = supervisor();
    let mut child = supervisor.start(&sh(LOOP, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (monitor, root) = above(child.pid().unwrap());
    drop(supervisor);
    assert!(stat(child.pid().unwrap()).is_some(), "the program keeps its monitor alive");
    drop(child);
    soon("both have exited", || stat(monitor).is_none() && stat(root).is_none()).await;
}

#[tokio::test]
async fn if_a_monitor_is_killed_the_supervisor_process_stops_its_program() {
    let token = token();
    let supervisor = supervisor();
    let script = format!("trap '' TERM; (setsid sleep 1000.$0 &); {LOOP}");
    let mut child = supervisor.start(&sh(&script, &token)).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (monitor, root) = above(child.pid().unwrap());
    kill(monitor, Signal::KILL);
    assert_eq!(child.wait().await, Err(WaitError::MonitorLost));
    assert_eq!(child.wait().await, Err(WaitError::MonitorLost));
    soon("all its processes are gone", || alive(&token).is_empty()).await;
    let mut next = supervisor.start(&sh("read x", "x")).await.unwrap();
    assert_eq!(above(next.pid().unwrap()).1, root);
    next.stop();
    next.wait().await.unwrap();
}

#[tokio::test]
async fn if_the_supervisor_process_is_killed_the_monitors_go_on_and_a_new_one_is_started() {
    let token = token();
    let supervisor = supervisor();
    let mut child = supervisor.start(&sh("read x; exit 4", &token)).await.unwrap();
    let (_, root) = above(child.pid().unwrap());
    kill(root, Signal::KILL);
    soon("the supervisor process is gone", || stat(root).is_none_or(|(_, state)| state == 'Z'))
        .await;
    let mut other = supervisor.start(&sh("read x; exit 6", &token)).await.unwrap();
    assert_ne!(above(other.pid().unwrap()).1, root);
    for (child, code) in [(&mut child, 4), (&mut other, 6)] {
        child.stdin = None;
        assert_eq!(child.wait().await, Ok(Exit::Code(code)));
    }
}

#[tokio::test]
async fn an_idle_monitor_that_was_killed_is_not_used() {
    let supervisor = supervisor();
    let mut child = supervisor.start(&sh("read x", "x")).await.unwrap();
    let (monitor, _) = above(child.pid().unwrap());
    child.stdin = None;
    child.wait().await.unwrap();
    drop(child);
    kill(monitor, Signal::KILL);
    soon("it is gone", || stat(monitor).is_none()).await;
    assert_eq!(supervisor.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn sigterm_to_a_monitor_stops_its_program() {
    let supervisor = supervisor();
    let mut child = supervisor.start(&sh(LOOP, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    kill(above(child.pid().unwrap()).0, Signal::TERM);
    assert_eq!(child.wait().await, Ok(Exit::Signal(15)));
    drop(child);
    assert_eq!(supervisor.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn an_executable_without_hidden_modes_is_detected_and_killed() {
    let token = token();
    let folder = tempfile::tempdir().unwrap();
    let hangs = folder.path().join("hangs");
    fs::write(&hangs, format!("#!/bin/sh\nexec sleep 1000.{token}\n")).unwrap();
    fs::set_permissions(&hangs, Permissions::from_mode(0o755)).unwrap();
    for (executable, kind) in [
        ("/bin/true".as_ref(), io::ErrorKind::BrokenPipe),
        (hangs.as_path(), io::ErrorKind::TimedOut),
        ("/no/such".as_ref(), io::ErrorKind::NotFound),
    ] {
        let start_timeout = Duration::from_millis(200);
        let executable = executable.to_owned();
        let supervisor =
            Supervisor::new(SupervisorSettings { executable, start_timeout, ..Default::default() });
        match supervisor.start(&sh("exit 0", "x")).await {
            Err(StartError::NoMonitor(error)) => assert_eq!(error.kind(), kind, "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(alive(&token), [""; 0]);
    }
}
