//! How far a folder has been read, shown to a person who would otherwise wait and wonder.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sabir_articles::Indexing;

/// What is read sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows on the standard error, if that is a terminal, how far the reading of a folder is.
pub(crate) fn of_reading(folder: &Path) -> impl Fn(Indexing) + Send + Sync + 'static {
    let (started, folder) = (Instant::now(), folder.display().to_string());
    let bar = OnceLock::new();
    move |Indexing { done, total }| {
        if done >= total {
            if let Some(bar) = bar.get() {
                ProgressBar::finish_and_clear(bar);
            }
        } else if started.elapsed() > PATIENCE {
            // What was read before must not count as read in an instant.
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
