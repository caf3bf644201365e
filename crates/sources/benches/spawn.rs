use sabir_sources::keeper::*;
use std::process::ExitCode;
use std::time::Instant;
fn stat(name: &str, mut v: Vec<std::time::Duration>) {
    v.sort();
    let n = v.len();
    println!(
        "{name}: p10 {:?} p50 {:?} p90 {:?} mean {:?}",
        v[n / 10],
        v[n / 2],
        v[n * 9 / 10],
        v.iter().sum::<std::time::Duration>() / n as u32
    );
}
fn main() -> ExitCode {
    if let Some(c) = sabir_sources::hidden_mode() {
        return c;
    }
    let n = 1000;
    let rt =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    let k = Keepers::new(KeeperSettings::default());
    let o = Order {
        program: "/bin/true".into(),
        args: vec![],
        env: vec![],
        cwd: "/".into(),
        stdin: false,
        patience: Patience::default(),
    };
    for _ in 0..3 {
        let mut v = vec![];
        for _ in 0..n {
            let t = Instant::now();
            let mut c = std::process::Command::new("/bin/true")
                .stdin(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .env_clear()
                .spawn()
                .unwrap();
            c.wait().unwrap();
            v.push(t.elapsed());
        }
        stat("bare", v);
        let v = rt.block_on(async {
            let mut v = vec![];
            for _ in 0..n {
                let t = Instant::now();
                let mut c = k.start(&o).await.unwrap();
                assert_eq!(c.wait().await.unwrap(), Exit::Code(0));
                drop(c);
                v.push(t.elapsed());
            }
            v
        });
        stat("kept", v);
        let v = rt.block_on(async {
            let mut v = vec![];
            for _ in 0..n {
                let t = Instant::now();
                let mut c = tokio::process::Command::new("/bin/true")
                    .env_clear()
                    .stdin(std::process::Stdio::null())
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .unwrap();
                c.wait().await.unwrap();
                v.push(t.elapsed());
            }
            v
        });
        stat("tokio", v);
    }
    rt.block_on(k.close());
    ExitCode::SUCCESS
}
