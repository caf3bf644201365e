"""Builds the site of docs/ with mdBook, and checks every link of the pages that it made.

usage: python3 docs/site.py FOLDER        (the program mdbook must be in PATH)

Links that leave docs/ lead to the repository. A link within the site must name a file, and a
fragment must be the id of an element there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\]\(\.\./([^)\s]*)\)")
# Pages that mdBook makes of all others, or that are shown in the place of a missing one.
GENERATED = {"print.html", "404.html", "toc.html"}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    site = Path(sys.argv[1]).resolve()
    repository = re.search(r'git-repository-url = "(.*)"', (DOCS / "book.toml").read_text())[1]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "docs"
        shutil.copytree(DOCS, source)
        for page in source.glob("*.md"):
            page.write_text(with_outer_links(page.read_text(), repository))
        subprocess.run(["mdbook", "build", "--dest-dir", site, source], check=True)
    return check(site)


def with_outer_links(text: str, repository: str) -> str:
    """Links out of docs/ become links to the repository; code stays as it is."""
    parts = CODE.split(text)
    outer = rf"]({repository}/blob/main/\1)"
    return "".join(part if CODE.fullmatch(part) else OUTSIDE.sub(outer, part) for part in parts)


class Page(HTMLParser):
    """The links of a page, and the ids of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and name in ("href", "src") and tag in ("a", "img", "link", "script"):
                self.links.append(value)
            elif value and (name == "id" or (name == "name" and tag == "a")):
                self.ids.add(value)


def check(site: Path) -> int:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name not in GENERATED}
    checked = wrong = 0
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if target.is_dir():
                target /= "index.html"
            fragment = unquote(parts.fragment)
            if not target.is_file():
                problem = "there is no such file"
            elif fragment and target in pages and fragment not in pages[target].ids:
                problem = f"there is no element `{fragment}`"
            else:
                continue
            wrong += 1
            print(f"{path.relative_to(site)}: {link}: {problem}")
    print(f"{len(pages)} pages, {checked} links checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
