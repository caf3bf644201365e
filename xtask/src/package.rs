//! The packages of the workspace, their dependencies and features, as `cargo metadata` lists them.
//!
//! [`Package::read_all`] takes the text of `cargo metadata`; it starts no process.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// One crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// Its manifest, from the root of the tree.
    pub(crate) manifest: String,
    /// The text of that manifest, for line numbers.
    pub(crate) manifest_text: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Declared features and those of optional dependencies.
    pub(crate) features: Vec<String>,
}

/// One line of `[dependencies]` or its siblings.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package's own name.
    pub(crate) name: String,
    /// Its name in this manifest.
    pub(crate) key: String,
    pub(crate) kind: Use,
    /// Its folder from the root of the tree, if it is one of ours.
    pub(crate) folder: Option<String>,
}

/// The kind of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Normal,
    Build,
    Dev,
}

impl Package {
    /// Reads the text of `cargo metadata --no-deps --format-version 1`.
    /// The texts of the manifests are filled in by the caller.
    pub(crate) fn read_all(root: &Path, metadata: &str) -> Result<Vec<Self>, serde_json::Error> {
        let metadata: Metadata = serde_json::from_str(metadata)?;
        Ok(metadata.packages.into_iter().map(|raw| raw.settle(root)).collect())
    }

    /// The folder of the crate inside `crates/`; `None` for a package elsewhere.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.manifest.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
    }

    /// The line of `key` in a section of the right kind of the manifest; 1 if it is not found.
    pub(crate) fn line_of(&self, key: &str, kind: Use) -> usize {
        let table = match kind {
            Use::Normal => "dependencies",
            Use::Build => "build-dependencies",
            Use::Dev => "dev-dependencies",
        };
        let mut inside = false;
        for (number, line) in (1..).zip(self.manifest_text.lines()) {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let header = header.split(']').next().unwrap_or_default();
                let last = |name: &str| header == name || header.ends_with(&format!(".{name}"));
                if last(&format!("{table}.{key}")) {
                    return number;
                }
                inside = last(table);
            } else if inside {
                let rest = line.trim_start_matches('"').strip_prefix(key);
                if rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"'])) {
                    return number;
                }
            }
        }
        1
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
}

#[derive(Deserialize)]
struct RawPackage {
    manifest_path: String,
    dependencies: Vec<RawDependency>,
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
    path: Option<String>,
}

impl RawPackage {
    fn settle(self, root: &Path) -> Package {
        Package {
            manifest: from_root(root, &self.manifest_path),
            manifest_text: String::new(),
            dependencies: self.dependencies.into_iter().map(|raw| raw.settle(root)).collect(),
            features: self.features.into_keys().collect(),
        }
    }
}

impl RawDependency {
    fn settle(self, root: &Path) -> Dependency {
        Dependency {
            key: self.rename.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            kind: match self.kind.as_deref() {
                Some("dev") => Use::Dev,
                Some("build") => Use::Build,
                _ => Use::Normal,
            },
            folder: self.path.map(|path| from_root(root, &path)),
        }
    }
}

fn from_root(root: &Path, path: &str) -> String {
    let path = Path::new(path);
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"packages": [{
        "name": "sabir-engine", "manifest_path": "/tree/crates/engine/Cargo.toml",
        "features": {"x": []},
        "dependencies": [
            {"name": "sabir-wire", "rename": "wire", "kind": null, "path": "/tree/crates/wire"},
            {"name": "tokio", "rename": null, "kind": "dev"},
            {"name": "cc", "rename": null, "kind": "build", "path": null}
        ]
    }]}"#;

    #[test]
    fn metadata_is_read_as_paths_of_the_tree() {
        let packages = Package::read_all(Path::new("/tree"), METADATA).unwrap();
        assert_eq!(packages[0].manifest, "crates/engine/Cargo.toml");
        assert_eq!(packages[0].folder(), Some("engine"));
        assert_eq!(packages[0].features, ["x"]);
        let [wire, tokio, cc] = packages[0].dependencies.as_slice() else { panic!("three") };
        assert_eq!((wire.key.as_str(), wire.name.as_str()), ("wire", "sabir-wire"));
        assert_eq!((wire.folder.as_deref(), wire.kind), (Some("crates/wire"), Use::Normal));
        assert_eq!((tokio.key.as_str(), tokio.kind), ("tokio", Use::Dev));
        assert_eq!((cc.folder.as_deref(), cc.kind), (None, Use::Build));
    }

    #[test]
    fn a_package_outside_crates_has_no_folder_there() {
        let package = Package { manifest: "xtask/Cargo.toml".into(), ..Package::default() };
        assert_eq!(package.folder(), None);
    }

    #[test]
    fn a_dependency_is_found_in_its_own_section() {
        let manifest_text =
            "[package]\nname = \"a\"\n[dependencies]\nab = \"1\"\na.workspace = true\n\
             [dev-dependencies]\na = { path = \"..\" }\n[target.'cfg(unix)'.build-dependencies.a]\n"
                .into();
        let package = Package { manifest_text, ..Package::default() };
        assert_eq!(package.line_of("a", Use::Normal), 5);
        assert_eq!(package.line_of("a", Use::Dev), 7);
        assert_eq!(package.line_of("a", Use::Build), 8);
        assert_eq!(package.line_of("b", Use::Normal), 1);
    }
}
