//! A progress bar for reading a large folder.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sabir_articles::Indexing;

use crate::escape::escaped;

/// How long reading takes before the bar appears.
const DELAY: Duration = Duration::from_secs(1);

/// Shows the progress of reading a folder on standard error, if that is a terminal.
pub(crate) fn of_reading(folder: &Path) -> impl Fn(Indexing) + Send + Sync + 'static {
    let (started, folder) = (Instant::now(), escaped(&folder.display().to_string()).into_owned());
    let bar = OnceLock::new();
    move |Indexing { done, total }| {
        if done >= total {
            if let Some(bar) = bar.get() {
                ProgressBar::finish_and_clear(bar);
            }
        } else if started.elapsed() > DELAY {
            // Files that were read before the bar appeared must not count in its speed.
            let bar = bar.get_or_init(|| {
                let bar = new_bar(&folder, total as u64).with_position(done as u64);
                bar.reset_eta();
                bar
            });
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }
}

fn new_bar(folder: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = "reading {msg} [{wide_bar}] {human_pos} of {human_len} files, {eta} left";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")).with_message(folder.to_owned()),
        Err(_) => bar,
    }
}
