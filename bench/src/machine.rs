//! The machine that the benchmark runs on.

use std::fs;
use std::thread;

use crate::figures::Machine;

/// Detects the machine. Must be called before this thread is pinned to a core.
pub fn detect() -> Machine {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        processor: processor(&processors),
        cores: thread::available_parallelism().map_or(1, usize::from),
        split: false,
        kernel: kernel.trim().to_owned(),
    }
}

/// The load average of the last minute.
pub fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().next()?.parse().ok()
}

fn processor(listed: &str) -> String {
    let name = listed.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_name_is_found() {
        assert_eq!(
            processor("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n"),
            "Some CPU @ 3 GHz"
        );
        assert_eq!(processor(""), std::env::consts::ARCH);
    }
}
