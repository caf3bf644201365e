//! Open files: sockets, pipes and folders all count as such, and the system limits their number.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that is asked for. Programs that we start inherit it, and some close all possible
/// files when they start.
const MOST: u64 = 1 << 16;

/// Raises the soft limit of open files towards the hard limit, at most to 65,536, and returns it.
pub fn raise_file_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current.unwrap_or(u64::MAX);
    let wanted = maximum.unwrap_or(u64::MAX).min(MOST);
    let raised = soft < wanted
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    usize::try_from(if raised { wanted } else { soft }).unwrap_or(usize::MAX)
}

/// The number of connections under a limit of open files: a quarter, at least 64 and at most 4,096,
/// is kept for programs, upstreams and folders.
pub fn files_for_connections(limit: usize) -> usize {
    limit.saturating_sub((limit / 4).clamp(64, 4096)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_never_connections() {
        let kept = [0, 64, 100, 1024, 20_000, 65_536].map(files_for_connections);
        assert_eq!(kept, [1, 1, 36, 768, 15_904, 61_440]);
    }

    #[test]
    fn the_limit_is_raised_and_told() {
        let limit = raise_file_limit();
        let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert_eq!(usize::try_from(soft).unwrap(), limit);
        assert_eq!(raise_file_limit(), limit);
    }
}
