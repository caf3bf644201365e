"""Checks that every relative link in README.md, the other pages of the root, docs/ and examples/
names a file, and that every page of docs/ is in docs/SUMMARY.md.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def main() -> int:
    root = Path(sys.argv[1])
    pages = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *root.glob("examples/*/README.md")]
    checked = wrong = 0
    for page in sorted(pages):
        for link in LINK.findall(CODE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", link) or link.startswith("#"):
                continue
            checked += 1
            if not (page.parent / link.split("#")[0]).exists():
                wrong += 1
                print(f"{page.relative_to(root)}: there is no {link}")
    summary = (root / "docs/SUMMARY.md").read_text()
    for page in sorted((root / "docs").glob("*.md")):
        if page.name != "SUMMARY.md" and f"({page.name})" not in summary:
            wrong += 1
            print(f"docs/SUMMARY.md: {page.name} is missing")
    print(f"{checked} links checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
