#!/usr/bin/env python3
"""Speaks to every peer and says what works: stdio and HTTP, both eras.

    check.py [PEER…]        those of peers.toml that are installed
    check.py -- COMMAND…    any server of the same interface, for example our own

A peer is asked for its tools and to echo, over each transport in each era. What
answers is printed, and compared with what peers.toml claims. Exit code 0: all is as
claimed; 1: something is not, or is not installed. Only the standard library.
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
SECONDS = 20  # for one answer; Python needs some to start

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
TEXT = 'hello "wörld"\n'  # has to be escaped, and comes back to the byte

NUMBERED = {"search": {"query", "folder", "limit"}, "move": {"from", "to"}}
REQUIRED = {"search": {"query"}, "move": {"from", "to"}}
DESCRIPTION = {
    "echo": "Says what it is told",
    "search": "Looks for something",
    "move": "Moves something",
}


class Wrong(Exception):
    """What the peer did is not what was asked for."""


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
        sys.exit(f"error: no such peer: {', '.join(sorted(unknown))}")
    good = True
    for peer in peers:
        if not names or peer["name"] in names:
            good &= check(peer)
    return 0 if good else 1


def check(peer: dict) -> bool:
    """Compares a peer with its claims; True if all of them hold."""
    command = resolve(peer["command"])
    missing = [word for word in command if word.startswith("/") and not os.path.exists(word)]
    if missing:
        print(f"{peer['name']}: not installed (no {missing[0]}); run bench/peers/install")
        return False
    seen = look(command)
    show(peer["name"], seen)
    wrong = [
        f"{key}: claimed {peer[key]}, seen {seen[key]}"
        for key in ("eras", "stdio", "sessions", "answers")
        if peer[key] != seen[key]
    ]
    for line in wrong:
        print(f"  WRONG: {line}")
    return not wrong


def resolve(command: list[str]) -> list[str]:
    """The real command: the rule stands at the head of peers.toml."""
    target = os.environ.get("TARGET") or os.environ.get("CARGO_TARGET_DIR")
    peers = (Path(target).absolute() if target else HERE.parents[1] / "target") / "peers"
    symbols = {"node": "bin/node", "python": "venv/bin/python"}
    return [str(peers / symbols.get(word, word)) for word in command]


def look(command: list[str]) -> dict:
    """What a peer can do, by asking it."""
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
    """One conversation with a process of its own, which then ends by itself."""
    with started([*command, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        lines = Lines(process)
        converse(era, lines.ask, lines.tell)
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            raise Wrong("still there 5 s after its input was closed") from None


def over_http(client: "Client", era: str) -> None:
    client.era = era
    converse(era, client.ask, client.tell)


def converse(era: str, ask, tell) -> None:
    """The same conversation over any transport; raises Wrong at the first surprise."""
    if era == "legacy":
        revision = ask("initialize", INITIALIZE).get("protocolVersion")
        if revision != LEGACY:
            raise Wrong(f"initialize was answered with revision {revision}")
        tell("notifications/initialized")
        meta = {}
    else:
        meta = {"_meta": META}
    # The call is first: a modern server has to understand any first request.
    for text in (TEXT, "", TEXT * 1000):
        result = ask("tools/call", {**meta, "name": "echo", "arguments": {"text": text}})
        judge_echo(result, text, era)
    judge_tools(ask("tools/list", meta).get("tools", []))


def judge_echo(result: dict, text: str, era: str) -> None:
    blocks = [(block.get("type"), block.get("text")) for block in result.get("content", [])]
    if blocks != [("text", text)]:
        raise Wrong(f"echo answered {json.dumps(result)[:200]}")
    if "structuredContent" in result:
        raise Wrong("echo adds structured content; ours does not")
    # A legacy server may answer what it does not understand; this word it cannot know.
    if era == "modern" and result.get("resultType") != "complete":
        raise Wrong("it answers, but with a legacy result (no resultType)")


def judge_tools(tools: list[dict]) -> None:
    wanted = {"echo"} | {f"{kind}_{n}" for kind in NUMBERED for n in range(1, 11)}
    names = sorted(tool["name"] for tool in tools)
    if names != sorted(wanted):
        raise Wrong(f"it lists {names}")
    for tool in tools:
        kind = tool["name"].split("_")[0]
        if tool.get("description") != DESCRIPTION[kind]:
            raise Wrong(f"{tool['name']} is described as {tool.get('description')!r}")
        if "outputSchema" in tool:
            raise Wrong(f"{tool['name']} has an output schema; ours has none")
        schema = tool["inputSchema"]
        if set(schema["properties"]) != NUMBERED.get(kind, {"text"}):
            raise Wrong(f"{tool['name']} takes {sorted(schema['properties'])}")
        if set(schema["required"]) != REQUIRED.get(kind, {"text"}):
            raise Wrong(f"{tool['name']} requires {schema['required']}")
        for name, property in schema["properties"].items():
            if not property.get("description"):
                raise Wrong(f"{tool['name']} does not describe {name}")


def result_of(message: dict) -> dict:
    if "error" in message:
        raise Wrong(f"error {message['error'].get('code')}: {message['error'].get('message')}")
    result = message.get("result")
    if not isinstance(result, dict) or result.get("isError"):
        raise Wrong(f"answered {json.dumps(message)[:200]}")
    return result


class Lines:
    """A process that speaks JSON, a message a line."""

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
                raise Wrong(f"no answer in {SECONDS} s")
            read = os.read(stdout, 65536)
            if not read:
                raise Wrong("closed its output")
            self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line


class Client:
    """One connection to `/mcp`. `kinds` is how answers came: json or sse."""

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
            raise Wrong(f"HTTP {response.status} with a result")
        self.kinds.add("json" if kind == "application/json" else "sse")
        return result

    def tell(self, method: str) -> None:
        response = self._post({"jsonrpc": "2.0", "method": method}, method, None)
        body = response.read()
        if response.status != 202 or body:
            raise Wrong(f"{method} was answered with HTTP {response.status}")

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
        """The answer in an event stream, which is then read to its end."""
        answer, data = None, []
        for line in response:
            line = line.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").strip())
            elif not line and data:
                text, data = b"\n".join(data), []
                # rmcp opens a stream with an event that has an id and no data.
                message = json.loads(text) if text else {}
                if message.get("id") == self.id and "method" not in message:
                    answer = message
        if answer is None:
            raise Wrong("the stream ended without an answer")
        return answer


@contextlib.contextmanager
def serving(command: list[str]):
    """A peer that serves HTTP, as a Client connected to it."""
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
                raise Wrong(f"does not listen after {SECONDS} s")
            time.sleep(0.02)
        client = Client(port)
        yield client
        client.connection.close()
        if process.poll() is not None:
            raise Wrong(f"ended with code {process.returncode}")
        if select.select([process.stdout], [], [], 0)[0]:
            raise Wrong("it writes to its standard output")


@contextlib.contextmanager
def started(command: list[str], **streams):
    """A process of ours, ended by us whatever happens."""
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
