use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, getsid, kill_process};
use sabir_supervisor::{Exit, KeeperSettings, Keepers, Order, StartError, WaitError};

use super::{PLAY, SOON, alive, keepers, line, sh, soon, stat, token};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The keeper of a program, and the warden above it.
fn above(pid: i32) -> (i32, i32) {
    let (keeper, _) = stat(pid).unwrap();
    let (warden, _) = stat(keeper).unwrap();
    (keeper, warden)
}

const LOOP: &str = "echo ready; while :; do sleep 0.01; done";

#[tokio::test]
async fn what_cannot_be_started_is_told_with_its_reason() {
    let keepers = keepers();
    let start = async |change: fn(&mut Order)| {
        let mut order = sh("exit 0", "x");
        change(&mut order);
        keepers.start(&order).await.unwrap_err().to_string()
    };
    assert_eq!(start(|o| o.program = "/no/such".into()).await, "there is no program /no/such");
    assert_eq!(
        start(|o| o.program = "/etc/passwd".into()).await,
        "/etc/passwd may not be executed"
    );
    assert_eq!(
        start(|o| o.cwd = "/no/such".into()).await,
        "there is no folder /no/such to start in"
    );
    assert_eq!(
        start(|o| o.cwd = "/etc/passwd".into()).await,
        "there is no folder /etc/passwd to start in"
    );
    assert_eq!(start(|o| o.program = "sh".into()).await, "sh is not an absolute path");
    assert_eq!(start(|o| o.cwd = ".".into()).await, ". is not an absolute path");
    let nul = "an argument or a variable contains a NUL byte";
    assert_eq!(start(|o| o.args = vec!["a\0b".into()]).await, nul);
    let large = "the arguments and the environment are larger than the system allows";
    assert_eq!(start(|o| o.args.push("x".repeat(131_072).into())).await, large);
    assert_eq!(start(|o| o.args.push("x".repeat(9 << 20).into())).await, large);
    // None of that has harmed the keepers.
    assert_eq!(keepers.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
    let longest = "x".repeat(131_071);
    let mut order = sh("exit ${#1}", "x");
    order.args.push(longest.into());
    order.args[1] = "exit $((${#1} == 131071))".into();
    assert_eq!(keepers.start(&order).await.unwrap().wait().await, Ok(Exit::Code(1)));
}

#[tokio::test]
async fn no_more_programs_run_than_the_bound() {
    let settings = KeeperSettings { program: PLAY.into(), max_children: 2, ..Default::default() };
    let keepers = Keepers::new(settings);
    let order = sh("read x", "x");
    let first = keepers.start(&order).await.unwrap();
    let _second = keepers.start(&order).await.unwrap();
    assert!(matches!(keepers.start(&order).await, Err(StartError::Full(2))));
    drop(first);
    keepers.start(&order).await.unwrap();
}

#[tokio::test]
async fn no_signal_to_sabirs_group_terminal_or_name_reaches_a_keeper() {
    let keepers = keepers();
    let child = keepers.start(&sh("read x", "x")).await.unwrap();
    let (keeper, warden) = above(child.pid().unwrap());
    let pid = |pid| Pid::from_raw(pid);
    assert_eq!(getsid(pid(warden)).ok(), pid(warden));
    assert_eq!(getsid(pid(keeper)).ok(), pid(warden));
    assert_eq!(getpgid(pid(keeper)).ok(), pid(keeper));
    for process in [keeper, warden] {
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        assert_eq!(read("comm"), "keeper\n");
        let name = format!("keeper of {}\0", std::process::id());
        assert!(read("cmdline").starts_with(&name), "{}", read("cmdline"));
        assert_eq!(read("environ"), "SABIR_KEEPER=1\0");
        assert_eq!(fs::read_link(format!("/proc/{process}/cwd")).unwrap(), Path::new("/"));
        // What it holds of ours is its socket: nobody waits for our output because of it.
        for stream in [1, 2] {
            let open = fs::read_link(format!("/proc/{process}/fd/{stream}")).unwrap();
            assert_eq!(open, Path::new("/dev/null"));
        }
    }
}

#[tokio::test]
async fn a_keeper_is_used_again_if_its_program_left_by_itself() {
    let keepers = keepers();
    let mut used = Vec::new();
    for end in [false, false, true, false] {
        let mut child = keepers.start(&sh("read x", "x")).await.unwrap();
        used.push(above(child.pid().unwrap()));
        child.stdin = None;
        if end {
            child.end();
        }
        child.wait().await.unwrap();
    }
    assert_eq!(used[0], used[1]);
    assert_eq!(used[1], used[2]);
    assert_ne!(used[2].0, used[3].0, "one that was told to end has left");
    assert_eq!(used[2].1, used[3].1, "there is one warden");
}

#[tokio::test]
async fn closing_ends_everything_and_waits_for_it() {
    let token = token();
    let keepers = keepers();
    let mut children = Vec::new();
    for _ in 0..3 {
        let script = format!("trap '' TERM; (setsid sleep 1000.$0 &); {LOOP}");
        let mut child = keepers.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        children.push(child);
    }
    let (_, warden) = above(children[0].pid().unwrap());
    assert!(keepers.close(SOON).await);
    assert_eq!(alive(&token), [""; 0]);
    assert!(stat(warden).is_none(), "the warden has left, and is no zombie");
    assert_eq!(children[0].wait().await, Ok(Exit::Signal(9)));
    assert!(matches!(keepers.start(&sh("exit 0", "x")).await, Err(StartError::Closed)));
    keepers.close(SOON).await;
}

#[tokio::test]
async fn closing_does_not_wait_for_ever() {
    let keepers = keepers();
    let child = keepers.start(&sh("read x", "x")).await.unwrap();
    let (keeper, warden) = above(child.pid().unwrap());
    kill(keeper, Signal::STOP); // as if its program hung in the kernel
    assert!(!keepers.close(Duration::from_millis(100)).await);
    kill(keeper, Signal::CONT);
    soon("both have left", || stat(keeper).is_none() && stat(warden).is_none()).await;
}

#[tokio::test]
async fn keepers_that_are_dropped_leave_by_themselves() {
    let keepers = keepers();
    let mut child = keepers.start(&sh(LOOP, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (keeper, warden) = above(child.pid().unwrap());
    drop(keepers);
    assert!(stat(child.pid().unwrap()).is_some(), "the program holds on to its keeper");
    drop(child);
    soon("both have left", || stat(keeper).is_none() && stat(warden).is_none()).await;
}

#[tokio::test]
async fn if_a_keeper_is_killed_the_warden_ends_what_it_kept() {
    let token = token();
    let keepers = keepers();
    let script = format!("trap '' TERM; (setsid sleep 1000.$0 &); {LOOP}");
    let mut child = keepers.start(&sh(&script, &token)).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (keeper, warden) = above(child.pid().unwrap());
    kill(keeper, Signal::KILL);
    assert_eq!(child.wait().await, Err(WaitError::KeeperLost));
    assert_eq!(child.wait().await, Err(WaitError::KeeperLost));
    soon("all of it is gone", || alive(&token).is_empty()).await;
    let mut next = keepers.start(&sh("read x", "x")).await.unwrap();
    assert_eq!(above(next.pid().unwrap()).1, warden);
    next.end();
    next.wait().await.unwrap();
}

#[tokio::test]
async fn if_the_warden_is_killed_the_keepers_go_on_and_a_new_one_comes() {
    let token = token();
    let keepers = keepers();
    let mut child = keepers.start(&sh("read x; exit 4", &token)).await.unwrap();
    let (_, warden) = above(child.pid().unwrap());
    kill(warden, Signal::KILL);
    soon("the warden is gone", || stat(warden).is_none_or(|(_, state)| state == 'Z')).await;
    let mut other = keepers.start(&sh("read x; exit 6", &token)).await.unwrap();
    assert_ne!(above(other.pid().unwrap()).1, warden);
    for (child, code) in [(&mut child, 4), (&mut other, 6)] {
        child.stdin = None;
        assert_eq!(child.wait().await, Ok(Exit::Code(code)));
    }
}

#[tokio::test]
async fn an_idle_keeper_that_was_killed_is_not_used() {
    let keepers = keepers();
    let mut child = keepers.start(&sh("read x", "x")).await.unwrap();
    let (keeper, _) = above(child.pid().unwrap());
    child.stdin = None;
    child.wait().await.unwrap();
    drop(child);
    kill(keeper, Signal::KILL);
    soon("it is gone", || stat(keeper).is_none()).await;
    assert_eq!(keepers.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn sigterm_to_a_keeper_ends_its_program() {
    let keepers = keepers();
    let mut child = keepers.start(&sh(LOOP, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    kill(above(child.pid().unwrap()).0, Signal::TERM);
    assert_eq!(child.wait().await, Ok(Exit::Signal(15)));
    drop(child);
    assert_eq!(keepers.start(&sh("exit 0", "x")).await.unwrap().wait().await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn a_program_that_is_no_keeper_is_found_out_and_ended() {
    let token = token();
    let folder = tempfile::tempdir().unwrap();
    let hangs = folder.path().join("hangs");
    fs::write(&hangs, format!("#!/bin/sh\nexec sleep 1000.{token}\n")).unwrap();
    fs::set_permissions(&hangs, Permissions::from_mode(0o755)).unwrap();
    for (program, kind) in [
        ("/bin/true".as_ref(), io::ErrorKind::BrokenPipe),
        (hangs.as_path(), io::ErrorKind::TimedOut),
        ("/no/such".as_ref(), io::ErrorKind::NotFound),
    ] {
        let start_within = Duration::from_millis(200);
        let program = program.to_owned();
        let keepers = Keepers::new(KeeperSettings { program, start_within, ..Default::default() });
        match keepers.start(&sh("exit 0", "x")).await {
            Err(StartError::NoKeeper(error)) => assert_eq!(error.kind(), kind, "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(alive(&token), [""; 0]);
    }
}
