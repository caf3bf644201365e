"""The ranks that SQLite FTS5 gives the pages of `questions.tsv`, for comparison.

usage: fts5.py FOLDER < QUESTIONS   (one question and its pages per line, separated by a tab)

The index has a title and a text per page (Porter stemmer, bm25 with the title counting ten times),
and a question is the disjunction of its words. Prints the rank of the first acceptable page among the first
ten, or 0, for each line.
"""

import os
import re
import sqlite3
import sys

ENDINGS = (".md", ".mdx", ".markdown", ".txt")


def pages(folder):
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS and not name.startswith("."):
                path = os.path.join(root, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                page = os.path.relpath(os.path.join(root, stem), folder)
                yield page, title(text) or stem, text


def title(text):
    found = re.search(r"^title:\s*[\"']?(.+?)[\"']?\s*$|^#\s+(.+)$", text, re.MULTILINE)
    return found and (found.group(1) or found.group(2))


def main():
    index = sqlite3.connect(":memory:")
    index.execute(
        "CREATE VIRTUAL TABLE pages USING fts5(page UNINDEXED, title, text, tokenize='porter unicode61')"
    )
    index.executemany("INSERT INTO pages VALUES (?, ?, ?)", pages(sys.argv[1]))
    for line in sys.stdin:
        question, wanted = line.rstrip("\n").split("\t")
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        found = index.execute(
            "SELECT page FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 0, 10, 1) LIMIT 10",
            (words,),
        ).fetchall()
        ranks = [at for at, (page,) in enumerate(found, 1) if page in wanted.split("|")]
        print(min(ranks, default=0))


if __name__ == "__main__":
    main()
