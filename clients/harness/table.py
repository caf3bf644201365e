"""Which clients are driven, in which modes, over which transports: the whole table.

The scripts only tell what they saw. Whether that is right is decided here, by
`judge`, for all of them.
"""

import json
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import installs

CLIENTS = Path(__file__).resolve().parents[1]
HANDSHAKE = "2025-11-25"  # the newest revision with a handshake
NEWEST = "2026-07-28"
FIRST_STRUCTURED = "2025-06-18"  # the first revision that has structured content
EVERY = ("stdio", "http", "sse")


@dataclass(frozen=True)
class Mode:
    """One way to use a client, and the revision that must then be agreed."""

    name: str
    revision: str | None = None  # None: the client does not say
    transports: tuple[str, ...] = ("stdio", "http")


@dataclass(frozen=True)
class Client:
    """A script, which gets the job and prints its observations, and its modes."""

    name: str
    needs: str  # the install without which it cannot run
    script: Callable[["Places"], list[str]]
    modes: list[Mode]
    program: Callable[["Places"], list[str]] | None = None  # what the script itself starts


@dataclass
class Places:
    """Where the installs are, or why one is missing."""

    node: Path | None = None
    npm: Path | None = None
    python: Path | None = None
    rmcp: Path | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def module(self, path: str) -> str:
        return str(self.npm / "node_modules" / path)


def install_all() -> Places:
    """Everything pinned, from the cache where it is there; the three kinds at once."""
    places = Places()

    def attempt(name: str, install: Callable[[], Path]) -> Path | None:
        try:
            return install()
        except installs.NotInstalled as missing:
            places.missing[name] = str(missing)
            return None

    def install_npm() -> Path:
        places.node = installs.node()
        place = installs.npm(CLIENTS / "node", places.node)
        # Node looks for a module beside the script that imports it.
        for script in (CLIENTS / "node").glob("*.mjs"):
            shutil.copy(script, place)
        return place

    rmcp = CLIENTS / "rmcp"
    with ThreadPoolExecutor() as pool:
        at_once = {
            "npm": install_npm,
            "python": lambda: installs.venv(CLIENTS / "python/requirements.txt"),
            "rmcp": lambda: installs.cargo_binary(rmcp, "sabir-client-rmcp"),
        }
        found = {name: pool.submit(attempt, name, install) for name, install in at_once.items()}
    places.npm = found["npm"].result()
    places.python = found["python"].result()
    places.rmcp = found["rmcp"].result()
    return places


def clients() -> list[Client]:
    eras = [Mode("legacy", HANDSHAKE, EVERY), Mode("auto", NEWEST)]
    older = [Mode(date, date) for date in ("2025-06-18", "2025-03-26", "2024-11-05")]
    # rmcp's Initialize asks for the newest revision, which has no handshake any more.
    lifecycles = [Mode("initialize", HANDSHAKE), Mode("auto", NEWEST), Mode("discover", NEWEST)]
    return [
        Client("TypeScript SDK v1", "npm", _node("sdk-v1.mjs"), [Mode("legacy", HANDSHAKE, EVERY)]),
        Client(
            "TypeScript client v2",
            "npm",
            _node("client-v2.mjs"),
            [Mode("legacy", HANDSHAKE), Mode("auto", NEWEST), Mode(NEWEST, NEWEST)],
        ),
        Client("Python mcp", "python", _python, [*eras, Mode(NEWEST, NEWEST)]),
        Client("Inspector", "npm", _cli("inspector"), [*eras, Mode("modern", NEWEST)], _inspector),
        Client("rmcp", "rmcp", _rmcp, [*lifecycles, *older]),
        Client(
            "Claude Code",
            "npm",
            _cli("claude_code"),
            [Mode("health", None, EVERY), Mode("call", None, EVERY)],
            _claude,
        ),
        Client("Gemini CLI", "npm", _cli("gemini"), [Mode("health", None, EVERY)], _gemini),
        Client("Codex", "npm", _cli("codex"), [Mode("call")], _codex),
        Client(
            "mcp-remote",
            "npm",
            _cli("mcp_remote"),
            [
                Mode("legacy", HANDSHAKE, ("http",)),
                Mode("auto", HANDSHAKE, ("http",)),
                Mode("modern", NEWEST, ("http",)),
            ],
            _mcp_remote,
        ),
    ]


def judge(mode: Mode, seen: dict, expected: dict) -> str | None:
    """Why the observations are wrong; None if they are right.

    `expected`: `tool`, `text`, `structured` (None if the tool has no such
    thing), and `any_revision`.
    """
    if mode.name == "health":
        return None if "health" in seen else f"not healthy: {json.dumps(seen)}"
    revision = seen.get("revision")
    if mode.revision and revision != mode.revision and not expected["any_revision"]:
        return f"agreed on {revision}, expected {mode.revision}"
    if expected["tool"] not in seen.get("tools", []):
        return f"`{expected['tool']}` is not among the tools {seen.get('tools')}"
    has_text = seen.get("text") is not None
    if has_text and seen["text"] != expected["text"]:
        return f"answered {seen['text']!r}, expected {expected['text']!r}"
    old = revision is not None and revision < FIRST_STRUCTURED
    if expected["structured"] is None or old:
        return None if has_text else "no text came back"
    if seen.get("structured") != expected["structured"]:
        want, got = json.dumps(expected["structured"]), json.dumps(seen.get("structured"))
        return f"structured content {got}, expected {want}"
    return None


def _node(script: str) -> Callable[[Places], list[str]]:
    return lambda places: [str(places.node), str(places.npm / script)]


def _cli(script: str) -> Callable[[Places], list[str]]:
    return lambda _places: [sys.executable, str(CLIENTS / "cli" / f"{script}.py")]


def _python(places: Places) -> list[str]:
    return [str(places.python), str(CLIENTS / "python/mcp_client.py")]


def _rmcp(places: Places) -> list[str]:
    return [str(places.rmcp)]


def _inspector(places: Places) -> list[str]:
    launcher = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return [str(places.node), places.module(launcher)]


def _claude(places: Places) -> list[str]:
    return [places.module("@anthropic-ai/claude-code-linux-x64/claude")]


def _gemini(places: Places) -> list[str]:
    return [str(places.node), places.module("@google/gemini-cli/bundle/gemini.js")]


def _codex(places: Places) -> list[str]:
    vendor = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl"
    return [places.module(f"{vendor}/bin/codex")]


def _mcp_remote(places: Places) -> list[str]:
    return [str(places.node), str(places.npm)]
