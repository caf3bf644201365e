"""Checks packed crates: every file that their code includes is in the package, and each has a
description, a licence, keywords and categories.

usage: check-crates.py FOLDER        (the folder `package` in cargo's target folder)
"""

import posixpath
import re
import sys
import tarfile
import tomllib
from pathlib import Path

INCLUDED = re.compile(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"')
KEYS = ("description", "license", "repository", "keywords", "categories")


def main() -> int:
    # cargo keeps two copies of each.
    crates = {crate.name: crate for crate in sorted(Path(sys.argv[1]).rglob("*.crate"))}
    wrong = 0
    for crate in crates.values():
        with tarfile.open(crate) as tar:
            files = {entry.name: tar.extractfile(entry) for entry in tar if entry.isfile()}
            for problem in problems(files):
                wrong += 1
                print(f"{crate.name}: {problem}")
    print(f"{len(crates)} crates checked, {wrong} wrong")
    return 1 if wrong or not crates else 0


def problems(files):
    for name, content in files.items():
        if name.count("/") == 1 and name.endswith("/Cargo.toml"):
            package = tomllib.loads(content.read().decode())["package"]
            yield from (f"`{key}` is missing" for key in KEYS if not package.get(key))
        # Tests of a module are not compiled when the crate is a dependency.
        elif name.endswith(".rs") and not name.endswith("tests.rs") and "/tests/" not in name:
            for path in INCLUDED.findall(content.read().decode()):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
                if target not in files:
                    yield f"{name} includes {path}, which is not in the package"


if __name__ == "__main__":
    sys.exit(main())
