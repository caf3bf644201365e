#!/usr/bin/env python3
"""How much a model reads for one search, and for the section that its best result names.

    bytes.py SABIR CORPUS

Asks the questions of questions.tsv on each folder of CORPUS, through the real binary, and
prints a table: the median and the most bytes of the text of a search, and how many bytes an
answer with one section has beyond the section itself.
"""

import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

QUESTIONS = Path(__file__).with_name("questions.tsv")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bytes", "version": "1"}}


class Server:
    def __init__(self, sabir: str, folder: Path) -> None:
        command = [sabir, "serve", "--no-config", str(folder), "--stdio"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.child = subprocess.Popen(command, text=True, **pipes)
        self.last = 0
        self.ask("initialize", HELLO)
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.child.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while (answer := json.loads(self.child.stdout.readline())).get("id") != self.last:
            pass
        return answer["result"]

    def said(self, tool: str, **arguments: object) -> str:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]

    def close(self) -> None:
        self.child.stdin.close()
        self.child.wait()


def measure(sabir: str, folder: Path, questions: list[str]) -> tuple[list[int], list[int]]:
    server = Server(sabir, folder)
    while "still being read" in server.said("list_articles", limit=1):
        time.sleep(0.2)
    searches, beyond = [], []
    for question in questions:
        found = server.said("search_articles", query=question)
        searches.append(len(found.encode()))
        named = re.search(r"\n1\. .* \(`([^`]*)`, section `([^`]*)`\)", found)
        if named:
            read = server.said("get_article", slug=named[1], section=named[2])
            _, text = read.split("\n\n", 1)
            beyond.append(len(read.encode()) - len(text.split("\n\n[Cut at ")[0].encode()))
    server.close()
    return searches, beyond


def main(sabir: str, corpus: Path) -> None:
    folders: dict[str, list[str]] = {}
    for line in QUESTIONS.read_text().splitlines():
        if not line.startswith("#"):
            folder, _, question, _ = line.split("\t")
            folders.setdefault(folder, []).append(question)
    print("| folder | a search: median | most | beyond a section: median | most |")
    print("|---|---:|---:|---:|---:|")
    for folder, questions in sorted(folders.items()):
        if (corpus / folder).is_dir():
            rows = measure(sabir, corpus / folder, questions)
            figures = " | ".join(f"{statistics.median(row):.0f} | {max(row)}" for row in rows)
            print(f"| {folder} | {figures} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
