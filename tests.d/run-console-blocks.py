"""Runs every `console` block of README.md and docs/*.md, and compares what it prints.

In a block, a line that begins with `$ ` is a command, continued by lines that begin
with `> `; the lines after it are its whole output, both streams together. The commands
of one file run in order, each in its own shell, in a temporary folder with a copy of
`examples`. A line `…` in the expected output matches any lines.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    root = Path(sys.argv[1])
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    ran = wrong = 0
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(root / "examples", Path(folder) / "examples")
            for block in BLOCK.findall(file.read_text()):
                for command, expected in steps(block):
                    ran += 1
                    printed = run(command, folder)
                    if not agrees(printed, expected):
                        wrong += 1
                        print(f"{file.relative_to(root)}: $ {command}\nshown:\n{expected}\nprinted:\n{printed}")
    print(f"{ran} commands of README.md and docs/ were run, {wrong} had other output")
    return 1 if wrong or not ran else 0


def steps(block: str):
    """The commands of a block, each with the output that is shown for it."""
    command, expected = None, []
    for line in block.splitlines():
        if command is not None and not expected and line.startswith("> "):
            command += "\n" + line[2:]
        elif line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(expected)
            command, expected = line[2:], []
        elif command is not None:
            expected.append(line)
    if command is not None:
        yield command, "\n".join(expected)


def run(command: str, folder: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, text=True, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    return done.stdout.rstrip("\n")


def agrees(printed: str, expected: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else re.escape(line) + r"\n" for line in expected.splitlines()
    )
    return re.fullmatch(pattern, printed + "\n" if printed else "") is not None


if __name__ == "__main__":
    sys.exit(main())
