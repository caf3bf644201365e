//! The files on disk and the output of `cargo metadata`. The only module of `tidy` that does I/O.
//!
//! Read are the files that git tracks and the new ones that it does not ignore.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use crate::package::Package;

/// The input of the rules.
pub(crate) struct Tree {
    /// Text files only, by path.
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
}

/// A text file, with its path from the root, with `/` between the folders.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The extensions of hand-written source files.
const SOURCE_ENDINGS: &[&str] =
    &["rs", "toml", "sh", "py", "ts", "js", "mjs", "cjs", "lua", "vim", "el", "c"];

impl File {
    /// Is this a source file of any language? A script without an extension begins with `#!`.
    pub(crate) fn is_source(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        match name.rsplit_once('.') {
            Some((_, ending)) => SOURCE_ENDINGS.contains(&ending),
            None => self.text.starts_with("#!"),
        }
    }
}

impl Tree {
    /// Reads the workspace in `root`. The error is a message for the user.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
        let mut paths = match tracked(&root) {
            Some(paths) => paths,
            None => walk(&root).map_err(|e| format!("{}: {e}", root.display()))?,
        };
        paths.sort();
        paths.dedup();
        let files: Vec<_> = paths.into_iter().filter_map(|path| read_text(&root, path)).collect();
        Ok(Self { packages: packages(&root, &files)?, files })
    }
}

/// `None` for a file that is missing, a link, or not text.
fn read_text(root: &Path, path: String) -> Option<File> {
    let place = root.join(&path);
    if !fs::symlink_metadata(&place).ok()?.is_file() {
        return None;
    }
    let text = String::from_utf8(fs::read(&place).ok()?).ok()?;
    (!text.contains('\0')).then_some(File { path, text })
}

/// The files of a git checkout; `None` without git, outside a checkout, or in an ignored folder.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        // The checkout may belong to another user.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let paths: Vec<_> =
        listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// The files of a folder without git, except build output and installed packages.
fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match entry.file_type()? {
                kind if kind.is_dir() && !matches!(&*name, ".git" | "target" | "node_modules") => {
                    folders.push(path);
                }
                kind if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    Ok(found)
}

fn packages(root: &Path, files: &[File]) -> Result<Vec<Package>, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let mut packages = Package::read_all(root, &String::from_utf8_lossy(&output.stdout))
        .map_err(|e| format!("cargo metadata: {e}"))?;
    for package in &mut packages {
        let manifest = files.iter().find(|file| file.path == package.manifest);
        package.manifest_text = manifest.map(|file| file.text.clone()).unwrap_or_default();
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_file_has_an_extension_or_a_first_line_that_says_so() {
        let is_source =
            |path: &str, text: &str| File { path: path.into(), text: text.into() }.is_source();
        assert!(is_source("crates/a/src/lib.rs", ""));
        assert!(is_source("examples/a/tool.py", ""));
        assert!(is_source("test", "#!/usr/bin/env bash\n"));
        assert!(!is_source("LICENSE", "MIT"));
        assert!(!is_source("a.d/README.md", "#!"));
        assert!(!is_source("package-lock.json", "{}"));
    }

    #[test]
    fn walking_a_folder_finds_the_same_files_as_git() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut walked = walk(&root).unwrap();
        walked.sort();
        let mut listed = tracked(&root).unwrap_or_else(|| walked.clone());
        listed.sort();
        assert!(walked.contains(&"rules/rings.rs".to_owned()));
        assert_eq!(walked, listed);
    }
}
