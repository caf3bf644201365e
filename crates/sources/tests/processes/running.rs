use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sabir_budget::CallQueue;
use sabir_sources::command::{FindError, Limit, Program, RunError, Stream, find_program, run};
use sabir_supervisor::{Exit, GracePeriod, StartError};

use super::{PLAY, SOON, alive, grace, script, shell, soon, stat, supervisor, token};

#[tokio::test]
async fn exact_bytes_reach_the_program_as_arguments() {
    let supervisor = supervisor();
    let program = shell("/");
    let long = "x".repeat(131_071);
    let values = [
        "",
        " ",
        "it's",
        "\"quoted\"",
        "two\nlines\r\n",
        "🦀 é \u{202e}",
        "--",
        "-rf",
        "$HOME",
        "$(touch x)",
        "`id`",
        "a;b|c>d&",
        "*",
        "\\n",
        "{a}",
        "\u{1}\u{7f}",
        &long,
    ];
    let mut args = script(r#"printf '%s\0' "$@""#);
    args.push("sh".into());
    args.extend(values.map(OsString::from));
    let finish = run(&supervisor, &program, args, None, None).await.unwrap();
    assert!(finish.success);
    let expected: Vec<u8> = values.iter().flat_map(|v| [v.as_bytes(), b"\0"].concat()).collect();
    assert_eq!(finish.stdout, expected);
}

#[tokio::test]
async fn exact_bytes_reach_the_program_as_input() {
    let supervisor = supervisor();
    let program = Program::new("/bin/cat".into(), "/".into());
    let megabyte: Vec<u8> = (0..1_000_000u32).map(|n| (n * 7 % 251) as u8).collect();
    for bytes in [b"".to_vec(), b"it's \"\0\xff\n".to_vec(), megabyte] {
        let finish = run(&supervisor, &program, vec![], Some(bytes.clone()), None).await.unwrap();
        assert!(finish.success);
        assert!(finish.stdout == bytes, "{} bytes were changed", bytes.len());
    }
    // A program need not read its input.
    let unread = Some(vec![b'x'; 1_000_000]);
    let finish = run(&supervisor, &shell("/"), script("exit 0"), unread, None).await.unwrap();
    assert!(finish.success);
    let finish = run(&supervisor, &program, vec![], None, None).await.unwrap();
    assert_eq!((finish.success, finish.stdout), (true, vec![]));
}

#[tokio::test]
async fn arguments_beyond_the_limit_of_the_system_are_refused() {
    let supervisor = supervisor();
    let args = vec!["x".repeat(1_000_000).into()];
    let refused = run(&supervisor, &shell("/"), args, None, None).await;
    assert!(matches!(refused, Err(RunError::Start(StartError::TooLarge))), "{refused:?}");
}

#[tokio::test]
async fn the_program_gets_exactly_its_environment_and_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut program = Program::new("/usr/bin/env".into(), folder.clone());
    assert!(program.env.iter().all(|(name, _)| name == "PATH"));
    program.env = vec![("A".into(), "1 2".into()), ("B".into(), "".into())];
    let supervisor = supervisor();
    let finish = run(&supervisor, &program, vec![], None, None).await.unwrap();
    assert_eq!(String::from_utf8(finish.stdout).unwrap(), "A=1 2\nB=\n");
    program.path = "/bin/pwd".into();
    let finish = run(&supervisor, &program, vec![], None, None).await.unwrap();
    assert_eq!(finish.stdout.trim_ascii_end(), folder.as_os_str().as_bytes());
}

#[tokio::test]
async fn a_code_means_success_if_it_is_listed() {
    let supervisor = supervisor();
    let mut program = shell("/");
    let finish =
        run(&supervisor, &program, script("echo why >&2; exit 3"), None, None).await.unwrap();
    assert_eq!((finish.success, finish.exit), (false, Some(Exit::Code(3))));
    assert_eq!((&finish.stderr[..], finish.stderr_cut), (&b"why\n"[..], 0));
    program.success_codes = vec![0, 3];
    assert!(run(&supervisor, &program, script("exit 3"), None, None).await.unwrap().success);
    assert!(!run(&supervisor, &program, script("kill -9 $$"), None, None).await.unwrap().success);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped_and_its_output_kept() {
    let token = token();
    let supervisor = supervisor();
    let mut program = shell("/");
    program.timeout = Duration::from_millis(300);
    let script =
        script(&format!("echo begun; (setsid sleep 1000.{token} &); exec sleep 1000.{token}"));
    let start = Instant::now();
    let finish = run(&supervisor, &program, script, None, None).await.unwrap();
    assert_eq!(alive(&token), [""; 0]);
    assert!(start.elapsed() >= program.timeout);
    assert_eq!(finish.limit, Some(Limit::Time));
    assert_eq!((finish.success, finish.exit), (false, Some(Exit::Signal(15))));
    assert_eq!(finish.stdout, b"begun\n");
}

#[tokio::test]
async fn a_timeout_may_be_zero_or_endless() {
    let supervisor = supervisor();
    let mut program = shell("/");
    program.timeout = Duration::ZERO;
    let late = run(&supervisor, &program, script("exit 0"), None, None).await;
    assert!(matches!(late, Err(RunError::NotStartedInTime)), "{late:?}");
    program.timeout = Duration::MAX;
    program.grace = GracePeriod { after_stdin: Duration::MAX, after_term: Duration::MAX };
    assert!(run(&supervisor, &program, script("exit 0"), None, None).await.unwrap().success);
}

#[tokio::test]
async fn output_is_limited_at_the_edge() {
    let supervisor = supervisor();
    let mut program = shell("/");
    program.max_output = 100_000;
    let write = |bytes: usize, to: &str| script(&format!("head -c {bytes} /dev/zero {to}"));
    for (to, stream) in [("", Stream::Output), (">&2", Stream::Error)] {
        let finish = run(&supervisor, &program, write(100_000, to), None, None).await.unwrap();
        assert_eq!((finish.success, finish.limit), (true, None), "{stream:?}");
        let finish = run(&supervisor, &program, write(100_001, to), None, None).await.unwrap();
        assert_eq!((finish.success, finish.limit), (false, Some(Limit::Output(stream))));
        assert!(finish.stdout.len() <= 100_000 && finish.stderr.len() <= 8 << 10);
        assert_eq!(
            finish.stderr.len() as u64 + finish.stderr_cut,
            match stream {
                Stream::Output => 0,
                Stream::Error => 100_001,
            }
        );
    }
}

#[tokio::test]
async fn ten_gigabytes_of_output_take_no_more_memory_than_the_limit() {
    let token = token();
    let supervisor = supervisor();
    let mut program = shell("/");
    program.max_output = 1 << 20;
    let flood = script(&format!("head -c 10737418240 /dev/zero; sleep 1000.{token}"));
    let finish = run(&supervisor, &program, flood, None, None).await.unwrap();
    assert_eq!(finish.limit, Some(Limit::Output(Stream::Output)));
    assert_eq!(finish.stdout.len(), 1 << 20);
    assert_eq!(alive(&token), [""; 0]);

    // Endless output, in a process of its own, so that its memory can be measured.
    let output = Command::new(PLAY).args(["flood", "1048576"]).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    let (finish, peak) = report.trim_end().split_once('\n').unwrap();
    assert_eq!(finish, "Some(Output(Output)) 1048576");
    let kilobytes: u32 = peak.parse().unwrap();
    assert!(kilobytes < 40_000, "{kilobytes} kB of memory for 1 MiB of output");
}

#[tokio::test]
async fn background_processes_do_not_delay_the_result() {
    let token = token();
    let supervisor = supervisor();
    let mut program = shell("/");
    program.grace = grace(0, 60_000);
    let script = script(&format!("sleep 1000.{token} & (setsid sleep 1000.{token} &); echo done"));
    let start = Instant::now();
    let finish = run(&supervisor, &program, script, None, None).await.unwrap();
    assert_eq!((finish.success, &finish.stdout[..]), (true, &b"done\n"[..]));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(alive(&token), [""; 0]);
}

#[tokio::test]
async fn a_program_that_exited_in_time_has_not_timed_out() {
    let token = token();
    let supervisor = supervisor();
    let mut program = shell("/");
    program.timeout = Duration::from_millis(200);
    program.grace = grace(0, 500);
    // A descendant ignores SIGTERM, and so outlives the timeout.
    let stubborn = format!("(trap '' TERM; sleep 1000.{token}; :) & sleep 0.05; exit 0");
    let start = Instant::now();
    let finish = run(&supervisor, &program, script(&stubborn), None, None).await.unwrap();
    assert_eq!(alive(&token), [""; 0]);
    assert!(start.elapsed() >= Duration::from_millis(500));
    assert_eq!((finish.success, finish.limit), (true, None));
}

#[tokio::test]
async fn lines_are_reported_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("go on");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let supervisor = supervisor();
    let program = shell(folder.path().to_str().unwrap());
    let mut seen = Vec::new();
    // The program waits until its first line has been reported.
    let mut observer = |stream: Stream, line: &[u8]| {
        if line == b"first" {
            let fifo = fifo.clone();
            std::thread::spawn(move || fs::write(fifo, "\n").unwrap());
        }
        seen.push((stream, String::from_utf8(line.to_vec()).unwrap()));
    };
    let script = script("echo first; read x < 'go on'; echo second >&2; printf third");
    let finish = run(&supervisor, &program, script, None, Some(&mut observer)).await.unwrap();
    assert!(finish.success);
    seen.sort_by_key(|(stream, _)| *stream == Stream::Error);
    let line = |stream, text: &str| (stream, text.to_owned());
    let (out, err) = (Stream::Output, Stream::Error);
    assert_eq!(seen, [line(out, "first"), line(out, "third"), line(err, "second")]);
}

#[tokio::test]
async fn a_dropped_call_is_stopped() {
    let token = token();
    let supervisor = supervisor();
    let program = shell("/");
    let script = script(&format!(
        "trap '' TERM; (setsid sleep 1000.{token} &); echo ready; while :; do sleep 0.01; done"
    ));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let mut ready = Some(ready);
    let mut observer = |_, _: &[u8]| ready.take().unwrap().send(()).unwrap();
    tokio::select! {
        finish = run(&supervisor, &program, script, None, Some(&mut observer)) => panic!("{finish:?}"),
        _ = is_ready => {}
    }
    soon("nothing is left", || alive(&token).is_empty()).await;
}

#[tokio::test]
async fn a_call_whose_program_cannot_be_stopped_returns() {
    let supervisor = supervisor();
    let mut program = shell("/");
    program.grace = grace(0, 0);
    program.timeout = Duration::from_millis(300);
    // A monitor that is stopped looks like a program that is blocked in the kernel.
    let monitor = Arc::new(Mutex::new(None));
    let stopper = Arc::clone(&monitor);
    let mut observer = move |_: Stream, line: &[u8]| {
        let program: i32 = std::str::from_utf8(line).unwrap().parse().unwrap();
        let monitor = Pid::from_raw(stat(program).unwrap().0).unwrap();
        kill_process(monitor, Signal::STOP).unwrap();
        *stopper.lock().unwrap() = Some(monitor);
    };
    let script = script("echo $$; exec sleep 1000");
    let start = Instant::now();
    let finish = run(&supervisor, &program, script, None, Some(&mut observer)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!((finish.exit, finish.limit), (None, Some(Limit::Time)));
    kill_process(monitor.lock().unwrap().unwrap(), Signal::CONT).unwrap();
    supervisor.close(SOON).await;
}

/// On one thread, where a task that may run is also the next to run.
#[tokio::test]
async fn sixty_four_calls_run_in_order_four_at_a_time_and_cancelled_ones_never() {
    let folder = tempfile::tempdir().unwrap();
    let (supervisor, queue) = (supervisor(), CallQueue::new(4, 64));
    let program = Arc::new(shell(folder.path().to_str().unwrap()));
    let inside = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for number in 0..64usize {
        let queued = queue.enter(1).unwrap();
        let (supervisor, program) = (supervisor.clone(), Arc::clone(&program));
        let (inside, order) = (Arc::clone(&inside), Arc::clone(&order));
        let call = tokio::spawn(async move {
            let _running = queued.await.unwrap();
            order.lock().unwrap().push(number);
            let now = inside.0.fetch_add(1, Ordering::SeqCst) + 1;
            inside.1.fetch_max(now, Ordering::SeqCst);
            let touch = format!("echo {number} > {number}; sleep 0.01; echo {number}");
            let finish = run(&supervisor, &program, script(&touch), None, None).await;
            inside.0.fetch_sub(1, Ordering::SeqCst);
            finish.unwrap().stdout
        });
        calls.push(call);
    }
    let off = |number: usize| number >= 4 && number.is_multiple_of(5);
    for (_, call) in calls.iter().enumerate().filter(|(number, _)| off(*number)) {
        call.abort();
    }
    for (number, call) in calls.into_iter().enumerate() {
        match call.await {
            Ok(stdout) => assert_eq!(stdout, format!("{number}\n").as_bytes()),
            Err(error) => assert!(error.is_cancelled() && off(number), "{number}"),
        }
        assert_eq!(folder.path().join(number.to_string()).exists(), !off(number), "{number}");
    }
    assert_eq!((inside.0.load(Ordering::SeqCst), inside.1.load(Ordering::SeqCst)), (0, 4));
    let expected: Vec<usize> = (0..64).filter(|number| !off(*number)).collect();
    assert_eq!(*order.lock().unwrap(), expected);
    supervisor.close(SOON).await;
}

#[tokio::test]
async fn a_program_is_found_by_path_or_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("data"), "x").unwrap();
    std::os::unix::fs::symlink("/bin/sh", path.join("tool")).unwrap();
    let find = |written: &str| find_program(written, path, Some(path.as_os_str()));
    assert_eq!(
        find("./tool").unwrap().canonicalize().unwrap(),
        Path::new("/bin/sh").canonicalize().unwrap()
    );
    assert_eq!(find("tool").unwrap(), path.join("tool"));
    assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
    assert_eq!(find("./data").unwrap_err(), FindError::NotExecutable(path.join("./data")));
    assert_eq!(find("./none").unwrap_err(), FindError::NoFile(path.join("./none")));
    assert_eq!(find("none").unwrap_err(), FindError::NotInPath("none".into()));
    assert_eq!(find("data").unwrap_err(), FindError::NotInPath("data".into()));
    assert!(find("./tool").unwrap().is_absolute());
}
