//! How far a folder has been read, shown to a person who would otherwise wait and wonder.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sabir_sources::articles::Indexing;

/// What is read sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows on the standard error, if that is a terminal, how far the reading of a folder is.
pub(crate) fn of_reading(folder: &Path) -> impl Fn(Indexing) + Send + Sync + 'static {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = "reading {msg} [{wide_bar}] {human_pos} of {human_len} files, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(folder.display().to_string());
    let started = Instant::now();
    move |Indexing { done, total }| {
        if total > 0 && done >= total {
            bar.finish_and_clear();
        } else if started.elapsed() > PATIENCE {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }
}
