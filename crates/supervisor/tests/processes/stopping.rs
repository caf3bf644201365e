use std::time::{Duration, Instant};

use sabir_supervisor::{Exit, StartRequest};

use super::{PLAY, alive, grace, line, rest, sh, soon, stat, supervisor, token};

#[tokio::test]
async fn the_exit_of_a_program_is_reported() {
    let supervisor = supervisor();
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -15 $$", Exit::Signal(15)),
    ] {
        let mut child = supervisor.start(&sh(script, "x")).await.unwrap();
        assert_eq!(child.wait().await, Ok(exit), "{script}");
        assert!(child.has_exited());
    }
}

#[tokio::test]
async fn a_program_that_exits_when_its_input_closes_gets_no_signal() {
    let script = "trap 'exit 9' TERM; cat; echo left";
    let request = StartRequest { grace: grace(60_000, 60_000), ..sh(script, "x") };
    let supervisor = supervisor();
    let mut child = supervisor.start(&request).await.unwrap();
    child.stop();
    assert_eq!(child.wait().await, Ok(Exit::Code(0)));
    assert_eq!(rest(&mut child).await, "left\n");
}

#[tokio::test]
async fn after_stdin_a_program_gets_sigterm_and_may_clean_up() {
    let script = "trap 'echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let request = StartRequest { grace: grace(50, 60_000), ..sh(script, "x") };
    let supervisor = supervisor();
    let mut child = supervisor.start(&request).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let start = Instant::now();
    child.stop();
    assert_eq!(child.wait().await, Ok(Exit::Code(3)));
    assert!(start.elapsed() >= Duration::from_millis(50), "SIGTERM came too early");
    assert_eq!(rest(&mut child).await, "tidied\n");
}

#[tokio::test]
async fn sigterm_is_sent_to_the_whole_group_immediately() {
    // The program itself does not exit, so that no process becomes an orphan meanwhile.
    let child = "trap \"echo told; exit\" TERM; echo ready; while :; do sleep 0.01; done";
    let script = format!("trap : TERM; sh -c '{child}' & while :; do sleep 0.01; done");
    let request = StartRequest { grace: grace(0, 60_000), ..sh(&script, "x") };
    let supervisor = supervisor();
    let mut child = supervisor.start(&request).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    child.stop();
    assert_eq!(line(&mut child).await, "told");
}

#[tokio::test]
async fn after_sigterm_a_program_gets_sigkill() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let request = StartRequest { grace: grace(50, 70), ..sh(script, "x") };
    let supervisor = supervisor();
    let mut child = supervisor.start(&request).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let start = Instant::now();
    child.stop();
    assert_eq!(child.wait().await, Ok(Exit::Signal(9)));
    assert!(start.elapsed() >= Duration::from_millis(120), "SIGKILL came too early");
}

/// Descendants that a program may leave behind. Each runs `sleep` with the token.
const LEFTOVERS: [(&str, &str); 6] = [
    ("a grandchild in its group", "sleep 1000.$0 &"),
    ("a grandchild in a session of its own", "setsid sleep 1000.$0 &"),
    ("an orphan in a session of its own", "(setsid sleep 1000.$0 &)"),
    ("one without an environment", "(env -i setsid /bin/sleep 1000.$0 &)"),
    ("one that ignores SIGTERM", "(setsid sh -c 'trap \"\" TERM; sleep 1000.$0; :' $0 &)"),
    ("a tree", "(setsid sh -c 'sh -c \"sleep 1000.$0 & wait\" $0 & sleep 1000.$0' $0 &)"),
];

#[tokio::test]
async fn the_descendants_of_an_exited_program_are_gone_when_wait_returns() {
    let supervisor = supervisor();
    for (what, leave) in LEFTOVERS {
        let token = token();
        let script = format!("{leave}\necho ready; read x; exit 5");
        let mut child = supervisor.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        soon(what, || {
            alive(&token)
                .iter()
                .any(|line| line.starts_with("sleep") || line.starts_with("/bin/sleep"))
        })
        .await;
        child.stdin = None; // so that `read` returns
        assert_eq!(child.wait().await, Ok(Exit::Code(5)), "{what}");
        assert_eq!(alive(&token), [""; 0], "{what}");
    }
}

#[tokio::test]
async fn all_processes_of_a_stopped_program_are_gone_when_wait_returns() {
    let supervisor = supervisor();
    for (what, leave) in LEFTOVERS {
        let token = token();
        let script = format!("trap '' TERM; {leave}\necho ready; while :; do sleep 0.01; done");
        let mut child = supervisor.start(&sh(&script, &token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        child.stop();
        assert_eq!(child.wait().await, Ok(Exit::Signal(9)), "{what}");
        assert_eq!(alive(&token), [""; 0], "{what}");
    }
}

#[tokio::test]
async fn all_processes_of_a_dropped_program_are_gone_soon() {
    let supervisor = supervisor();
    let tokens = LEFTOVERS.map(|_| token());
    for ((_, leave), token) in LEFTOVERS.iter().zip(&tokens) {
        let script = format!("trap '' TERM; {leave}\necho ready; while :; do sleep 0.01; done");
        let mut child = supervisor.start(&sh(&script, token)).await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        drop(child);
    }
    for ((what, _), token) in LEFTOVERS.iter().zip(&tokens) {
        soon(what, || alive(token).is_empty()).await;
    }
}

#[tokio::test]
async fn a_program_that_forks_faster_than_it_can_be_listed_is_stopped() {
    let token = token();
    let supervisor = supervisor();
    let request = StartRequest {
        program: PLAY.into(),
        args: vec!["runaway".into(), (&token).into()],
        ..sh("", "x")
    };
    let mut child = supervisor.start(&request).await.unwrap();
    assert_eq!(child.wait().await, Ok(Exit::Code(0)));
    assert_eq!(alive(&token), [""; 0]);
}

#[tokio::test]
async fn orphans_that_exit_while_the_program_runs_leave_no_zombies() {
    let supervisor = supervisor();
    let script = "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; echo ready; read x";
    let mut child = supervisor.start(&sh(script, "x")).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (monitor, _) = stat(child.pid().unwrap()).unwrap();
    let children = || {
        let path = format!("/proc/{monitor}/task/{monitor}/children");
        std::fs::read_to_string(path).unwrap().split_whitespace().count()
    };
    soon("the monitor has only the program", || children() == 1).await;
    child.stdin = None;
    assert_eq!(child.wait().await, Ok(Exit::Code(1)));
}
