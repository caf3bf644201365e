//! Files that were found in a folder, not named by the user.
//!
//! A folder of articles can come from another user, with a `sabir.toml` that runs programs. Such a
//! file is used only if no other user can have written it into the folder, and even then it cannot
//! open the server to other hosts: the user may not know that it exists.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::file::File;
use super::http::parse_address;
use super::mistake::{Mistake, Text};

/// The permission bit "others may write".
const OTHERS_WRITE: u32 = 0o002;

/// Checks that a found file and its folder belong to the user, and are not writable by all users.
pub(super) fn check_owner(path: &Path, file: &Metadata) -> Result<(), Mistake> {
    let folder = Text::new(path, "").folder();
    let folder = folder.metadata().map_err(|error| Mistake::unreadable(path, &error))?;
    let user = rustix::process::geteuid().as_raw();
    let mut reasons = [("its folder", &folder), ("it", file)].into_iter();
    match reasons.find_map(|(what, metadata)| distrust(what, metadata, user)) {
        None => Ok(()),
        Some(reason) => {
            let what = format!("the configuration is not used: {reason}");
            Err(Mistake::of_file(path, what).hint(format!(
                "name the file to use it ({}), or serve the articles alone with --no-config",
                path.display()
            )))
        }
    }
}

fn distrust(what: &str, metadata: &Metadata, user: u32) -> Option<String> {
    if metadata.uid() != user {
        return Some(format!("{what} belongs to another user (user id {})", metadata.uid()));
    }
    (metadata.mode() & OTHERS_WRITE != 0).then(|| format!("{what} is writable by all users"))
}

/// Checks that a found file does not open the server to other hosts.
pub(super) fn check_settings(file: &File, text: &Text<'_>) -> Result<(), Mistake> {
    match opening(file) {
        None => Ok(()),
        Some((place, key)) => {
            let what = format!("`{key}` is accepted only in a file that is named");
            Err(text.mistake(place, what).hint(format!(
                "name the file ({}), or use the options of `sabir serve`",
                text.path.display()
            )))
        }
    }
}

/// The first setting that opens the server to other hosts.
fn opening(file: &File) -> Option<(Range<usize>, &'static str)> {
    // An invalid address is reported later.
    let is_public =
        |written: &str| parse_address(written).is_some_and(|address| !address.ip().is_loopback());
    let mut addresses = [&file.listen.http, &file.listen.ws].into_iter().flatten();
    if let Some(written) = addresses.find(|written| is_public(written.get_ref())) {
        return Some((written.span(), "a public address"));
    }
    let flags =
        [(&file.http.allow_public, "allow_public"), (&file.http.behind_proxy, "behind_proxy")];
    for (flag, key) in flags {
        if let Some(written) = flag.as_ref().filter(|flag| *flag.get_ref()) {
            return Some((written.span(), key));
        }
    }
    let lists = [
        (&file.http.origins, "origins"),
        (&file.http.hosts, "hosts"),
        (&file.http.trusted_proxies, "trusted_proxies"),
    ];
    lists.into_iter().find_map(|(list, key)| {
        let written = list.as_ref().filter(|list| !list.get_ref().is_empty())?;
        Some((written.span(), key))
    })
}
