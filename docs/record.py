"""Records a real run in a terminal as docs/first-run.svg.

usage: SABIR=target/release/sabir INSPECTOR='npx @modelcontextprotocol/inspector' python3 docs/record.py [--check]

It serves examples/handbook and lets a client that is not ours, the MCP Inspector, search it. With
--check the run is compared with the picture, and uses a free port.
"""

import html
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "retry a call safely"
WIDTH, LINES = 92, 10  # of the answer, in characters and lines


def main() -> None:
    sabir = str(Path(os.environ.get("SABIR", ROOT / "target/release/sabir")).resolve())
    inspector = shlex.split(os.environ.get("INSPECTOR", "npx @modelcontextprotocol/inspector"))
    is_check = sys.argv[1:] == ["--check"]
    serve = ["serve", "examples/handbook"]
    port = ["--http", "0"] if is_check else []
    # The token of the console is another at every start.
    env = {**os.environ, "SABIR_CONSOLE_TOKEN": "pH2Vq8cW4mZt"}
    pipe = subprocess.PIPE
    server = subprocess.Popen([sabir, *serve, *port], cwd=ROOT, stderr=pipe, env=env, text=True)
    try:
        said = [server.stderr.readline().rstrip() for _ in range(5)]
        url = said[0].rsplit(" ", 1)[1]
        call = ["--cli", url, "--transport", "http", "--method", "tools/call",
                "--tool-name", "search_articles", "--tool-arg", f"query={QUESTION}"]
        done = subprocess.run([*inspector, *call], check=True, capture_output=True, text=True)
    finally:
        server.terminate()
        server.wait()
    answer = json.loads(done.stdout)["content"][0]["text"].splitlines()[:LINES]
    lines = [("$", f"sabir {' '.join(serve)}")] + [("", line) for line in said]
    lines += [("", ""), ("$", "mcp-inspector --cli " + url + " --method tools/call \\"),
              ("", f"    --tool-name search_articles --tool-arg query='{QUESTION}'")]
    lines += [("", line) for line in answer] + [("", "…")]
    shown = picture(lines)
    path = ROOT / "docs/first-run.svg"
    if not is_check:
        path.write_text(shown)
    elif re.sub(r"(127\.0\.0\.1):\d+", r"\1:7331", shown) != path.read_text():
        sys.exit(f"docs/first-run.svg is not what is seen now (python3 docs/record.py):\n{shown}")


def picture(lines: list[tuple[str, str]]) -> str:
    height = 20 * len(lines) + 40
    rows = []
    for number, (prompt, text) in enumerate(lines):
        text = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
        mark = f'<tspan fill="#7ee787">{prompt} </tspan>' if prompt else ""
        color = "#ffffff" if prompt else "#c9d1d9"
        rows.append(
            f'<text x="20" y="{36 + 20 * number}" fill="{color}" xml:space="preserve">'
            f"{mark}{html.escape(text)}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" role="img" '
        f'aria-label="sabir serves a folder, and the MCP Inspector searches it" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="820" height="{height}" rx="8" fill="#0d1117"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
