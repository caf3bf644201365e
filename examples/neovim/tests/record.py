"""Records the picture of the README: real Neovim and real Claude Code, at work on one file.

    SABIR=… CLAUDE=… python examples/neovim/tests/record.py examples/neovim/neovim.svg
"""

import html
import os
import re
import subprocess
import sys
import time

from claude import Claude
from editor import Editor, wait_for

WIDTH, HEIGHT = 92, 28
CELL, LINE = 7.8, 17
BASIC = "000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5 666666 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db ffffff"
FOREGROUND, BACKGROUND = "#d4d4d4", "#1e1e1e"


class Visible(Editor):
    """Neovim in a terminal of tmux."""

    def spawn(self, arguments, environment):
        self.terminal = str(self.folder / "nvim-tmux.sock")
        environment = {**environment, "TERM": "xterm-256color"}
        line = ["tmux", "-S", self.terminal, "-f", "/dev/null", "new-session", "-d"]
        line += ["-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(self.workspace), "nvim", *arguments]
        subprocess.run(line, env=environment, check=True, stdin=subprocess.DEVNULL)
        return self

    def kill(self):
        subprocess.run(["tmux", "-S", self.terminal, "kill-server"], check=True)

    def wait(self):
        pass

    def screen(self) -> str:
        line = ["tmux", "-S", self.terminal, "capture-pane", "-e", "-p"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def color(number: int) -> str:
    if number < 16:
        return "#" + BASIC.split()[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    level = [0, 95, 135, 175, 215, 255]
    number -= 16
    return f"#{level[number // 36]:02x}{level[number // 6 % 6]:02x}{level[number % 6]:02x}"


def apply(style: dict, codes: list[int]) -> dict:
    """The style after an SGR sequence."""
    style, codes = dict(style), codes or [0]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (38, 48):
            kind = codes.pop(0)
            name = "fg" if code == 38 else "bg"
            if kind == 5:
                style[name] = color(codes.pop(0))
            else:
                style[name] = "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))
        elif code in (1, 7):
            style["bold" if code == 1 else "reverse"] = True
        elif code in (22, 27):
            style.pop("bold" if code == 22 else "reverse", None)
        elif code in (39, 49):
            style.pop("fg" if code == 39 else "bg", None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["fg"] = color(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style["bg"] = color(code - 40 if code < 100 else code - 92)
    return style


def draw(screen: str, left: float, top: float) -> list[str]:
    """A screen with its colours as elements of an SVG."""
    out, style = [], {}
    for row, line in enumerate(screen.splitlines()[:HEIGHT]):
        column, y = 0, top + row * LINE
        for part in re.split(r"(\x1b\[[\d;:]*m)", line):
            if match := re.fullmatch(r"\x1b\[([\d;:]*)m", part):
                style = apply(style, [int(code) for code in re.split("[;:]", match[1]) if code])
                continue
            part = re.sub(r"\x1b[()][AB0]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]", "", part)
            if not part:
                continue
            ink, ground = style.get("fg", FOREGROUND), style.get("bg", BACKGROUND)
            if style.get("reverse"):
                ink, ground = ground, ink
            x, width = left + column * CELL, len(part) * CELL
            if ground != BACKGROUND:
                out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{LINE}" fill="{ground}"/>')
            if part.strip():
                bold = ' font-weight="bold"' if style.get("bold") else ""
                text = html.escape(part)
                out.append(
                    f'<text x="{x:.1f}" y="{y + 13:.1f}" fill="{ink}"{bold} textLength="{width:.1f}"'
                    f' xml:space="preserve">{text}</text>'
                )
            column += len(part)
    return out


def picture(left: str, right: str) -> str:
    width, height = 2 * WIDTH * CELL + 60, HEIGHT * LINE + 70
    second = WIDTH * CELL + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-size="13"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace">',
        f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>',
        f'<text x="20" y="26" fill="#8a8a8a">Neovim</text><text x="{second:.0f}" y="26" fill="#8a8a8a">Claude Code</text>',
        f'<line x1="{second - 20:.0f}" y1="0" x2="{second - 20:.0f}" y2="100%" stroke="#444"/>',
        *draw(left, 20, 40),
        *draw(right, second, 40),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main(path: str) -> None:
    with Visible("debounce = 50") as editor:
        file = editor.workspace / "greet.py"
        file.write_text('def greet(name):\n    print("hello " + name)\n\n\ngreet("world")\n')
        proposed = 'def greet(name: str) -> None:\n    print(f"hello {name}")\n\n\ngreet("world")\n'
        call = {"file_path": str(file), "content": proposed}
        with Claude(editor, "Write", call, size=(WIDTH, HEIGHT)) as claude:
            claude.connected()
            editor.keys(":edit greet.py<CR>ggVj")
            claude.shows("2 lines selected")
            claude.say(f"@{file.name} use an f-string and type hints")
            wait_for(lambda: editor.lua("require('sabir.diff').names()"), "the diff is open")
            time.sleep(1.5)
            screens = editor.screen(), claude.tmux("capture-pane", "-e", "-p")
        with open(path, "w", encoding="utf-8") as out:
            out.write(picture(*screens).replace(str(editor.folder), "~"))
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
