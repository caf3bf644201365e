"""Packs one static binary into every form in which people install programs.

usage: package.py --binary FILE --arch x86_64|aarch64 --out FOLDER

Run by `cargo xtask dist`, which builds the binary. It needs Python and dpkg-deb, and no
network. The files have the same bytes for the same input: times come from
SOURCE_DATE_EPOCH, names are sorted.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION, REPOSITORY = PACKAGE["version"], PACKAGE["repository"]
ABOUT = "Serve what you have to every MCP client"
OWNER = REPOSITORY.split("/")[3]
LICENSE = (ROOT / "LICENSE").read_bytes()
SERVER_NAME = f"io.github.{OWNER}/sabir"
# The name of the architecture in each world.
ARCH = {
    "x86_64": {"node": "x64", "deb": "amd64", "wheel": "x86_64", "oci": "amd64"},
    "aarch64": {"node": "arm64", "deb": "arm64", "wheel": "aarch64", "oci": "arm64"},
}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--binary", type=Path, required=True)
    options.add_argument("--arch", choices=ARCH, required=True)
    options.add_argument("--out", type=Path, required=True)
    options = options.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    binary, arch = options.binary.read_bytes(), options.arch
    texts = generated(options.binary, arch, out.parent / "dist-texts.json")
    made = [
        archive(out, arch, binary, texts),
        *npm(out, arch, binary),
        wheel(out, arch, binary),
        deb(out, arch, binary, texts),
        mcpb(out, arch, binary),
        oci(out, arch, binary),
    ]
    # Of all architectures that were packed.
    packages = [path for path in out.iterdir() if path.suffix in (".gz", ".tgz", ".whl", ".deb", ".mcpb", ".tar")]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in packages}
    (out / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
    homebrew(out, sums)
    registry(out, sums)
    for path in made:
        print(f"{path.stat().st_size:>10}  {path.name}")


def generated(binary: Path, arch: str, kept: Path) -> dict[str, bytes]:
    """The manual and the completions, which the binary prints itself. A binary that does not run
    on this machine has those of one that was packed before."""
    if arch == platform.machine():
        said = lambda *words: subprocess.run(
            [binary, *words], check=True, capture_output=True, text=True
        ).stdout
        kept.write_text(json.dumps({
            "man/sabir.1": said("man"),
            "completions/sabir.bash": said("completions", "bash"),
            "completions/_sabir": said("completions", "zsh"),
            "completions/sabir.fish": said("completions", "fish"),
        }))
    elif not kept.exists():
        raise SystemExit(f"error: pack {platform.machine()} first; it prints the manual")
    return {name: text.encode() for name, text in json.loads(kept.read_text()).items()}


def tar_of(files: list[tuple[str, bytes, int]]) -> bytes:
    """A tar archive of (name, bytes, mode)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(path: Path, files: list[tuple[str, bytes, int]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            entry.create_system = 3
            archive.writestr(entry, content)
    return path


def packed(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, 9, mtime=EPOCH))
    return path


def archive(out: Path, arch: str, binary: bytes, texts: dict[str, bytes]) -> Path:
    name = f"sabir-{VERSION}-{arch}-unknown-linux-musl"
    files = [(f"{name}/sabir", binary, 0o755)]
    files += [(f"{name}/{path}", text, 0o644) for path, text in sorted(texts.items())]
    files += [(f"{name}/{path}", (ROOT / path).read_bytes(), 0o644) for path in ("LICENSE", "README.md")]
    return packed(out / f"{name}.tar.gz", tar_of(files))


def npm(out: Path, arch: str, binary: bytes) -> list[Path]:
    """A starter, and one package per platform; no scripts run when they are installed."""
    node = ARCH[arch]["node"]
    common = {"version": VERSION, "license": "MIT", "repository": REPOSITORY, "description": ABOUT}
    native = {
        "name": f"@{OWNER}/sabir-linux-{node}", **common,
        "os": ["linux"], "cpu": [node], "files": ["bin"],
    }
    starter = {
        "name": "sabir", **common, "mcpName": SERVER_NAME,
        "bin": {"sabir": "bin/sabir.js"}, "files": ["bin"], "engines": {"node": ">=18"},
        "optionalDependencies": {
            f"@{OWNER}/sabir-linux-{names['node']}": VERSION for names in ARCH.values()
        },
    }
    text = lambda value: (json.dumps(value, indent=2) + "\n").encode()
    script = (ROOT / "dist/npm/sabir.js").read_text().replace("@OWNER", f"@{OWNER}")
    readme = f"# sabir\n\n{ABOUT}. See {REPOSITORY}.\n".encode()
    return [
        packed(out / f"npm-sabir-{VERSION}.tgz", tar_of([
            ("package/package.json", text(starter), 0o644),
            ("package/bin/sabir.js", script.encode(), 0o755),
            ("package/README.md", readme, 0o644),
            ("package/LICENSE", LICENSE, 0o644),
        ])),
        packed(out / f"npm-sabir-linux-{node}-{VERSION}.tgz", tar_of([
            ("package/package.json", text(native), 0o644),
            ("package/bin/sabir", binary, 0o755),
            ("package/README.md", readme, 0o644),
            ("package/LICENSE", LICENSE, 0o644),
        ])),
    ]


def wheel(out: Path, arch: str, binary: bytes) -> Path:
    """The binary lies in the scripts of the wheel, so that no Python runs in between."""
    machine = ARCH[arch]["wheel"]
    tags = [f"py3-none-manylinux_2_17_{machine}", f"py3-none-musllinux_1_1_{machine}"]
    tag = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    info = f"sabir-{VERSION}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: sabir\nVersion: {VERSION}\nSummary: {ABOUT}\n"
        f"License-Expression: MIT\nLicense-File: LICENSE\nRequires-Python: >=3.8\nProject-URL: Repository, {REPOSITORY}\n"
        f"Description-Content-Type: text/markdown\n\n{ABOUT}. See {REPOSITORY}.\n\n"
        f"<!-- mcp-name: {SERVER_NAME} -->\n"
    )
    about = "Wheel-Version: 1.0\nGenerator: sabir dist\nRoot-Is-Purelib: false\n"
    files = [
        (f"sabir-{VERSION}.data/scripts/sabir", binary, 0o755),
        (f"{info}/licenses/LICENSE", LICENSE, 0o644),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", (about + "".join(f"Tag: {tag}\n" for tag in tags)).encode(), 0o644),
    ]
    digest = lambda content: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    return zip_of(out / f"sabir-{VERSION}-{tag}.whl", files)


def deb(out: Path, arch: str, binary: bytes, texts: dict[str, bytes]) -> Path:
    machine = ARCH[arch]["deb"]
    files = {
        "usr/bin/sabir": (binary, 0o755),
        "usr/lib/systemd/system/sabir.service": ((ROOT / "dist/deb/sabir.service").read_bytes(), 0o644),
        "etc/sabir/sabir.toml": ((ROOT / "dist/deb/sabir.toml").read_bytes(), 0o644),
        "usr/share/man/man1/sabir.1.gz": (gzip.compress(texts["man/sabir.1"], 9, mtime=EPOCH), 0o644),
        "usr/share/bash-completion/completions/sabir": (texts["completions/sabir.bash"], 0o644),
        "usr/share/zsh/vendor-completions/_sabir": (texts["completions/_sabir"], 0o644),
        "usr/share/fish/vendor_completions.d/sabir.fish": (texts["completions/sabir.fish"], 0o644),
        "usr/share/doc/sabir/copyright": (LICENSE, 0o644),
    }
    size = sum(len(content) for content, _ in files.values()) // 1024
    control = (
        f"Package: sabir\nVersion: {VERSION}\nArchitecture: {machine}\nSection: utils\n"
        f"Priority: optional\nMaintainer: The Sabir authors <{OWNER}@users.noreply.github.com>\n"
        f"Installed-Size: {size}\nHomepage: {REPOSITORY}\nDescription: {ABOUT}\n"
        " Folders of articles and command-line programs, served to every MCP client.\n"
    )
    path = out / f"sabir_{VERSION}_{machine}.deb"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        for name, (content, mode) in files.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(mode)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control)
        (root / "DEBIAN/conffiles").write_text("/etc/sabir/sabir.toml\n")
        for entry in [root, *root.rglob("*")]:
            if entry.is_dir():
                entry.chmod(0o755)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
        )
    return path


def mcpb(out: Path, arch: str, binary: bytes) -> Path:
    """A bundle for Claude Desktop and others: the user chooses a folder, and it is served."""
    manifest = {
        "manifest_version": "0.3", "name": "sabir", "display_name": "Sabir", "version": VERSION,
        "description": "Search and read a folder of Markdown, or use the tools of a sabir.toml",
        "author": {"name": "The Sabir authors", "url": REPOSITORY},
        "repository": {"type": "git", "url": REPOSITORY}, "license": "MIT",
        "keywords": ["markdown", "search", "tools"],
        "server": {
            "type": "binary", "entry_point": "server/sabir",
            "mcp_config": {
                "command": "${__dirname}/server/sabir",
                "args": ["serve", "${user_config.folder}", "--stdio"], "env": {},
            },
        },
        "tools_generated": True,
        "user_config": {
            "folder": {
                "type": "directory", "title": "Folder",
                "description": "A folder of Markdown files, or one with a sabir.toml",
                "required": True,
            },
        },
        "compatibility": {"platforms": ["linux"]},
    }
    return zip_of(out / f"sabir-{VERSION}-linux-{ARCH[arch]['node']}.mcpb", [
        ("manifest.json", (json.dumps(manifest, indent=2) + "\n").encode(), 0o644),
        ("server/sabir", binary, 0o755),
        ("LICENSE", LICENSE, 0o644),
    ])


def oci(out: Path, arch: str, binary: bytes) -> Path:
    """An image as `FROM scratch` would make it (see dist/Dockerfile), without a daemon."""
    layer = tar_of([("sabir", binary, 0o755), ("LICENSE", LICENSE, 0o644)])
    compressed = gzip.compress(layer, 9, mtime=EPOCH)
    sha = lambda content: "sha256:" + hashlib.sha256(content).hexdigest()
    blob = lambda content, kind: {"mediaType": kind, "digest": sha(content), "size": len(content)}
    text = lambda value: json.dumps(value).encode()
    config = text({
        "architecture": ARCH[arch]["oci"], "os": "linux",
        "config": {
            "Entrypoint": ["/sabir"], "Cmd": ["serve", "/data", "--stdio"], "User": "65534:65534",
            "Labels": {
                "io.modelcontextprotocol.server.name": SERVER_NAME,
                "org.opencontainers.image.licenses": "MIT",
                "org.opencontainers.image.source": REPOSITORY,
                "org.opencontainers.image.version": VERSION,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [sha(layer)]},
    })
    manifest = text({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(config, "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(compressed, "application/vnd.oci.image.layer.v1.tar+gzip")],
    })
    top = blob(manifest, "application/vnd.oci.image.manifest.v1+json")
    top["annotations"] = {"org.opencontainers.image.ref.name": VERSION}
    blobs = [(f"blobs/sha256/{sha(content)[7:]}", content, 0o644) for content in (config, compressed, manifest)]
    path = out / f"sabir-{VERSION}-oci-{ARCH[arch]['oci']}.tar"
    path.write_bytes(tar_of([
        ("oci-layout", text({"imageLayoutVersion": "1.0.0"}), 0o644),
        ("index.json", text({"schemaVersion": 2, "manifests": [top]}), 0o644),
        *blobs,
    ]))
    return path


def homebrew(out: Path, sums: dict[str, str]) -> None:
    """A formula for the architectures that were built."""
    blocks = []
    for arch, brew in (("x86_64", "intel"), ("aarch64", "arm")):
        name = f"sabir-{VERSION}-{arch}-unknown-linux-musl.tar.gz"
        if name in sums:
            url = f"{REPOSITORY}/releases/download/v{VERSION}/{name}"
            blocks.append(f'    on_{brew} do\n      url "{url}"\n      sha256 "{sums[name]}"\n    end\n')
    template = (ROOT / "dist/sabir.rb").read_text()
    values = {"VERSION": VERSION, "REPOSITORY": REPOSITORY, "ABOUT": ABOUT, "BLOCKS": "".join(blocks).rstrip()}
    (out / "sabir.rb").write_text(re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], template))


def registry(out: Path, sums: dict[str, str]) -> None:
    """`server.json` for the MCP registry."""
    stdio, folder = {"type": "stdio"}, {
        "type": "positional", "valueHint": "folder", "isRequired": True,
        "description": "A folder of Markdown, or one with a sabir.toml",
    }
    arguments = [{"type": "positional", "value": "serve"}, folder, {"type": "named", "name": "--stdio"}]
    package = lambda kind, **more: {
        "registryType": kind, "identifier": "sabir", "version": VERSION, "transport": stdio,
        "packageArguments": arguments, **more,
    }
    packages = [
        package("npm", runtimeHint="npx"), package("pypi", runtimeHint="uvx"),
        {**package("cargo"), "identifier": "sabir-cli"},
    ]
    # crates.io shows the README without comments, so the proof of ownership is part of its text.
    if f"mcp-name: {SERVER_NAME}" not in (ROOT / "README.md").read_text():
        raise SystemExit(f"error: README.md does not say `mcp-name: {SERVER_NAME}`")
    for name, sum in sorted(sums.items()):
        if name.endswith(".mcpb"):
            packages.append({
                "registryType": "mcpb", "fileSha256": sum, "transport": stdio,
                "identifier": f"{REPOSITORY}/releases/download/v{VERSION}/{name}",
            })
    server = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": SERVER_NAME, "title": "Sabir", "description": ABOUT, "version": VERSION,
        "repository": {"url": REPOSITORY, "source": "github"}, "packages": packages,
    }
    (out / "server.json").write_text(json.dumps(server, indent=2) + "\n")


if __name__ == "__main__":
    main()
