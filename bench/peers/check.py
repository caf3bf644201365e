#!/usr/bin/env python3
"""Checks every peer over stdio and HTTP, in both eras.

    check.py [PEER…]        the installed peers of peers.toml
    check.py -- COMMAND…    any server with the same interface, for example our own

Calls `echo` and `wait` and lists the tools, over each transport in each era. Prints what
works and compares it with peers.toml. Exit code 0: everything matches; 1: something does
not, or a peer is not installed. Uses only the standard library.
"""

import contextlib
import http.client
import json
import os
import select
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 20  # time limit of one answer; Python peers start slowly

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "check", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "check", "version": "1"},
}
TEXT = 'hello "wörld"\n'  # needs escaping, and must be returned unchanged

NUMBERED = {"search": {"query", "folder", "limit"}, "move": {"from", "to"}}
COUNTS = {"search": 10, "move": 9}
REQUIRED = {"search": {"query"}, "move": {"from", "to"}}
DESCRIPTION = {
    "echo": "Says what it is told",
    "wait": "Waits once, then says what it is told",
    "search": "Looks for something",
    "move": "Moves something",
}


class Wrong(Exception):
    """The peer did not behave as expected."""


def main() -> int:
    names = sys.argv[1:]
    if names[:1] == ["--"]:
        seen = look(names[1:])
        show("given", seen)
        return 0 if seen["failures"] == [] else 1
    with open(HERE / "peers.toml", "rb") as file:
        peers = tomllib.load(file)["peer"]
    unknown = set(names) - {peer["name"] for peer in peers}
    if unknown:
        sys.exit(f"error: unknown peer: {', '.join(sorted(unknown))}")
    good = True
    for peer in peers:
        if not names or peer["name"] in names:
            good &= check(peer)
    return 0 if good else 1


def check(peer: dict) -> bool:
    """Compares a peer with peers.toml. Returns whether everything matches."""
    command = resolve(peer["command"])
    missing = [word for word in command if word.startswith("/") and not os.path.exists(word)]
    if missing:
        print(f"{peer['name']}: not installed (no {missing[0]}); run bench/peers/install")
        return False
    seen = look(command)
    show(peer["name"], seen)
    wrong = [
        f"{key} is {seen[key]} (peers.toml: {peer[key]})"
        for key in ("eras", "stdio", "sessions", "answers")
        if peer[key] != seen[key]
    ]
    for line in wrong:
        print(f"  WRONG: {line}")
    return not wrong


def resolve(command: list[str]) -> list[str]:
    """Resolves the words of a command, as described in peers.toml."""
    target = os.environ.get("TARGET") or os.environ.get("CARGO_TARGET_DIR")
    peers = (Path(target).absolute() if target else HERE.parents[1] / "target") / "peers"
    symbols = {"node": "bin/node", "python": "venv/bin/python"}
    return [str(peers / symbols.get(word, word)) for word in command]


def look(command: list[str]) -> dict:
    """Finds out what a server supports."""
    seen = {"eras": [], "stdio": [], "sessions": False, "answers": None, "failures": []}
    kinds = set()

    def attempt(era: str, transport: str, into: str, ask) -> None:
        try:
            ask()
            seen[into].append(era)
        except (Wrong, OSError, ValueError, http.client.HTTPException) as failure:
            seen["failures"].append(f"{transport}, {era}: {failure}")

    for era in ("modern", "legacy"):
        attempt(era, "stdio", "stdio", lambda era=era: over_stdio(command, era))

    try:
        with serving(command) as client:
            for era in ("modern", "legacy"):
                attempt(era, "http", "eras", lambda era=era: over_http(client, era))
                kinds |= client.kinds if era in seen["eras"] else set()
                client.kinds = set()
            seen["sessions"] = "legacy" in seen["eras"] and client.session is not None
    except (Wrong, OSError) as failure:
        seen["failures"].append(f"http: {failure}")
        seen["eras"] = []
    seen["answers"] = kinds.pop() if len(kinds) == 1 else sorted(kinds)
    return seen


def show(name: str, seen: dict) -> None:
    words = {key: " ".join(seen[key]) or "nothing" for key in ("eras", "stdio")}
    kept = "with sessions" if seen["sessions"] else "without sessions"
    print(f"{name}: http {words['eras']} ({seen['answers']}, {kept}); stdio {words['stdio']}")
    for failure in seen["failures"]:
        print(f"  no {failure}")


def over_stdio(command: list[str], era: str) -> None:
    """Checks a process of its own, which must end when its input is closed."""
    with started([*command, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        lines = Lines(process)
        converse(era, lines.ask, lines.tell)
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            raise Wrong("did not end after its input was closed (waited 5 s)") from None


def over_http(client: "Client", era: str) -> None:
    client.era = era
    converse(era, client.ask, client.tell)


def converse(era: str, ask, tell) -> None:
    """Sends the same requests over any transport. Raises Wrong at the first mistake."""
    if era == "legacy":
        revision = ask("initialize", INITIALIZE).get("protocolVersion")
        if revision != LEGACY:
            raise Wrong(f"initialize returned revision {revision} (expected {LEGACY})")
        tell("notifications/initialized")
        meta = {}
    else:
        meta = {"_meta": META}
    # Calls come first: a modern server must accept any request as the first one.
    for tool in ("echo", "wait"):
        for text in (TEXT, "", TEXT * 1000):
            result = ask("tools/call", {**meta, "name": tool, "arguments": {"text": text}})
            judge_text(result, tool, text, era)
    judge_tools(ask("tools/list", meta).get("tools", []))


def judge_text(result: dict, tool: str, text: str, era: str) -> None:
    blocks = [(block.get("type"), block.get("text")) for block in result.get("content", [])]
    if blocks != [("text", text)]:
        raise Wrong(f"{tool} returned {json.dumps(result)[:200]}")
    if "structuredContent" in result:
        raise Wrong(f"{tool} returned structured content (expected none)")
    # A legacy server may ignore the metadata and answer, but without this field.
    if era == "modern" and result.get("resultType") != "complete":
        raise Wrong("legacy result without resultType")


def judge_tools(tools: list[dict]) -> None:
    numbered = {f"{kind}_{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)}
    wanted = {"echo", "wait"} | numbered
    names = sorted(tool["name"] for tool in tools)
    if names != sorted(wanted):
        raise Wrong(f"unexpected list of tools: {names}")
    for tool in tools:
        kind = tool["name"].split("_")[0]
        if tool.get("description") != DESCRIPTION[kind]:
            raise Wrong(f"wrong description of {tool['name']}: {tool.get('description')!r}")
        if "outputSchema" in tool:
            raise Wrong(f"{tool['name']} has an output schema (expected none)")
        schema = tool["inputSchema"]
        if set(schema["properties"]) != NUMBERED.get(kind, {"text"}):
            raise Wrong(f"wrong arguments of {tool['name']}: {sorted(schema['properties'])}")
        if set(schema["required"]) != REQUIRED.get(kind, {"text"}):
            raise Wrong(f"wrong required arguments of {tool['name']}: {schema['required']}")
        for name, property in schema["properties"].items():
            if not property.get("description"):
                raise Wrong(f"{tool['name']}: argument {name} has no description")


def result_of(message: dict) -> dict:
    if "error" in message:
        raise Wrong(f"error {message['error'].get('code')}: {message['error'].get('message')}")
    result = message.get("result")
    if not isinstance(result, dict) or result.get("isError"):
        raise Wrong(f"answered {json.dumps(message)[:200]}")
    return result


class Lines:
    """A process with one JSON message per line."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.buffer = b""
        self.id = 0

    def ask(self, method: str, params: dict) -> dict:
        self.id += 1
        self._write({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            message = json.loads(self._line())
            if message.get("id") == self.id and "method" not in message:
                return result_of(message)

    def tell(self, method: str) -> None:
        self._write({"jsonrpc": "2.0", "method": method})

    def _write(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _line(self) -> bytes:
        until = time.monotonic() + SECONDS
        stdout = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            if not select.select([stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise Wrong(f"no answer (waited {SECONDS} s)")
            read = os.read(stdout, 65536)
            if not read:
                raise Wrong("closed its standard output")
            self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line


class Client:
    """One connection to `/mcp`. `kinds` holds the formats of answers: json or sse."""

    def __init__(self, port: int):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        self.id = 0
        self.era = "modern"
        self.session: str | None = None
        self.kinds: set[str] = set()

    def ask(self, method: str, params: dict) -> dict:
        self.id += 1
        message = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        response = self._post(message, method, params.get("name"))
        if method == "initialize":
            self.session = response.headers.get("Mcp-Session-Id")
        kind = response.headers.get_content_type()
        if kind == "application/json":
            answer = json.loads(response.read())
        elif kind == "text/event-stream":
            answer = self._event(response)
        else:
            raise Wrong(f"HTTP {response.status} with {kind}: {response.read()[:200]!r}")
        result = result_of(answer)
        if response.status != 200:
            raise Wrong(f"HTTP {response.status} for a result (expected 200)")
        self.kinds.add("json" if kind == "application/json" else "sse")
        return result

    def tell(self, method: str) -> None:
        response = self._post({"jsonrpc": "2.0", "method": method}, method, None)
        body = response.read()
        if response.status != 202 or body:
            raise Wrong(f"HTTP {response.status} for {method} (expected 202 without a body)")

    def _post(self, message: dict, method: str, name: str | None) -> http.client.HTTPResponse:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.era == "modern":
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            headers |= {"Mcp-Name": name} if name else {}
        elif method != "initialize":
            headers |= {"MCP-Protocol-Version": LEGACY}
            headers |= {"Mcp-Session-Id": self.session} if self.session else {}
        self.connection.request("POST", "/mcp", json.dumps(message), headers)
        return self.connection.getresponse()

    def _event(self, response: http.client.HTTPResponse) -> dict:
        """Reads an event stream to its end and returns the answer."""
        answer, data = None, []
        for line in response:
            line = line.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").strip())
            elif not line and data:
                text, data = b"\n".join(data), []
                # The first event of rmcp has an id but no data.
                message = json.loads(text) if text else {}
                if message.get("id") == self.id and "method" not in message:
                    answer = message
        if answer is None:
            raise Wrong("the stream ended without an answer")
        return answer


@contextlib.contextmanager
def serving(command: list[str]):
    """Starts a peer for HTTP and yields a connected Client."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with started([*command, "http", address], **streams) as process:
        until = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            if process.poll() is not None:
                raise Wrong(f"ended with code {process.returncode}")
            if time.monotonic() > until:
                raise Wrong(f"does not listen (waited {SECONDS} s)")
            time.sleep(0.02)
        client = Client(port)
        yield client
        client.connection.close()
        if process.poll() is not None:
            raise Wrong(f"ended with code {process.returncode}")
        if select.select([process.stdout], [], [], 0)[0]:
            raise Wrong("writes to its standard output")


@contextlib.contextmanager
def started(command: list[str], **streams):
    """Starts a process and always ends it."""
    process = subprocess.Popen(command, **streams)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError, AttributeError):
                stream.close()


if __name__ == "__main__":
    sys.exit(main())
