"""Walks through a stdio server in every revision and records all that is said.

    python3 walk.py OUT -- COMMAND ARGS…

For each revision it starts the server, agrees on the revision, lists
everything, calls every tool, gets every prompt, reads every resource, answers
what the server asks, and makes the mistakes that deserve an error. It judges
nothing but the agreed revision and silence; `check.py` judges the record.
Standard library only. Exit code 1: the server did not answer.
"""

import json
import queue
import subprocess
import sys
import threading

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
SECONDS = 20  # for one answer
ROUNDS = 5  # questions in one call
META = "io.modelcontextprotocol/"
ME = {"name": "sabir-walk", "version": "1.0.0"}

# Our answers to the server's questions: valid and simple.
ANSWERS = {
    "ping": {},
    "roots/list": {"roots": [{"uri": "file:///walk", "name": "walk"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "nobody",
        "stopReason": "endTurn",
    },
    "elicitation/create": {"action": "decline"},
}
FIRST_ASKED = {"elicitation/create": "2025-06-18"}  # older revisions have no such question


class Failed(Exception):
    """The server did not do what every server does."""


class Conversation:
    """One server process, spoken to in one revision."""

    def __init__(self, command: list[str], revision: str, out):
        self.revision = revision
        self._out = out
        self._asked: dict[int, str] = {}
        self._inbox: queue.Queue[dict | None] = queue.Queue()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._writing = threading.Lock()  # both threads record
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_failure) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Failed(f"{self.revision}: still there {SECONDS} s after the end of its input") from None
        self._reader.join(SECONDS)  # its last messages belong to the record

    def notify(self, method: str, params: dict) -> None:
        self._send(method, {"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, method: str, params: dict) -> int:
        id_ = len(self._asked) + 1
        self._asked[id_] = method
        self._send(method, {"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return id_

    def ask(self, method: str, params: dict) -> dict:
        """A request and its answer; messages in between are answered or noted."""
        id_ = self.send(method, params)
        return self.wait(lambda message: message.get("id") == id_ and "method" not in message)

    def say(self, line: str) -> None:
        """Bytes that are not a message. An answer to them has no id, so none is awaited."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def wait(self, wanted) -> dict:
        while True:
            try:
                message = self._inbox.get(timeout=SECONDS)
            except queue.Empty:
                raise Failed(f"{self.revision}: no answer within {SECONDS} s") from None
            if message is None:
                raise Failed(f"{self.revision}: the server ended")
            if wanted(message):
                return message
            if "method" in message and "id" in message:
                self._answer(message)

    def _answer(self, request: dict) -> None:
        method = request["method"]
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if self.revision < FIRST_ASKED.get(method, ""):
            answer["error"] = {"code": -32601, "message": f"{self.revision} has no {method}"}
        else:
            answer["result"] = ANSWERS[method]
        self._send(method, answer)

    def _send(self, kind: str, message: dict) -> None:
        self._record("client", kind, message)
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            kind = message.get("method") or self._asked.get(message.get("id"), "")
            self._record("server", kind, message)
            self._inbox.put(message)
        self._inbox.put(None)

    def _record(self, direction: str, kind: str, message: dict) -> None:
        record = {
            "revision": self.revision,
            "direction": direction,
            "kind": kind,
            "message": message,
        }
        with self._writing:
            self._out.write(json.dumps(record) + "\n")


def main() -> int:
    out, dashes, *command = sys.argv[1:]
    if dashes != "--" or not command:
        sys.exit(__doc__)
    with open(out, "w") as file:
        for revision in LEGACY:
            with Conversation(command, revision, file) as server:
                walk_legacy(server)
        with Conversation(command, MODERN, file) as server:
            walk_modern(server)
    return 0


def walk_legacy(server: Conversation) -> None:
    capabilities = {"roots": {"listChanged": True}, "sampling": {}}
    if server.revision >= FIRST_ASKED["elicitation/create"]:
        capabilities["elicitation"] = {}
    hello = {"protocolVersion": server.revision, "capabilities": capabilities, "clientInfo": ME}
    agreed = server.ask("initialize", hello)["result"]
    if agreed["protocolVersion"] != server.revision:
        raise Failed(f"{server.revision}: the server agreed on {agreed['protocolVersion']}")
    server.notify("notifications/initialized", {})
    server.ask("ping", {})
    if "logging" in agreed["capabilities"]:
        server.ask("logging/setLevel", {"level": "debug"})
    uris = walk_offers(server, agreed["capabilities"], {})
    if agreed["capabilities"].get("resources", {}).get("subscribe") and uris:
        server.ask("resources/subscribe", {"uri": uris[0]})
        server.ask("resources/unsubscribe", {"uri": uris[0]})
    server.notify("notifications/roots/list_changed", {})
    make_mistakes(server, {})


def walk_modern(server: Conversation) -> None:
    capabilities = {"roots": {}, "sampling": {}, "elicitation": {}}
    meta = {
        f"{META}protocolVersion": server.revision,
        f"{META}clientInfo": ME,
        f"{META}clientCapabilities": capabilities,
        f"{META}logLevel": "debug",
    }
    found = server.ask("server/discover", {"_meta": meta})["result"]
    if server.revision not in found["supportedVersions"]:
        raise Failed(f"{server.revision}: the server offers {found['supportedVersions']}")
    topics = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
    listening = server.send("subscriptions/listen", {"_meta": meta, "notifications": topics})
    acknowledged = "notifications/subscriptions/acknowledged"
    server.wait(lambda m: m.get("method") == acknowledged or m.get("id") == listening)
    walk_offers(server, found["capabilities"], {"_meta": meta})
    server.notify("notifications/cancelled", {"requestId": listening})
    make_mistakes(server, {"_meta": meta})


def walk_offers(server: Conversation, capabilities: dict, common: dict) -> list[str]:
    """Everything that is offered, once; gives the resources' URIs."""
    uris = []
    if "tools" in capabilities:
        for tool in pages(server, "tools/list", "tools", common):
            params = {"name": tool["name"], "arguments": sample(tool["inputSchema"])}
            meta = {**common.get("_meta", {}), "progressToken": f"walk {tool['name']}"}
            with_rounds(server, "tools/call", params, {"_meta": meta})
    if "prompts" in capabilities:
        for prompt in pages(server, "prompts/list", "prompts", common):
            names = [argument["name"] for argument in prompt.get("arguments", [])]
            params = {"name": prompt["name"], "arguments": dict.fromkeys(names, "x")}
            with_rounds(server, "prompts/get", params, common)
            if names and "completions" in capabilities:
                ref = {"type": "ref/prompt", "name": prompt["name"]}
                argument = {"name": names[0], "value": "x"}
                server.ask("completion/complete", {"ref": ref, "argument": argument, **common})
    if "resources" in capabilities:
        uris = [resource["uri"] for resource in pages(server, "resources/list", "resources", common)]
        pages(server, "resources/templates/list", "resourceTemplates", common)
        for uri in uris:
            with_rounds(server, "resources/read", {"uri": uri}, common)
    return uris


def pages(server: Conversation, method: str, key: str, common: dict) -> list[dict]:
    items, cursor = [], {}
    while True:
        result = server.ask(method, {**cursor, **common}).get("result", {})
        items += result.get(key, [])
        if "nextCursor" not in result:
            return items
        cursor = {"cursor": result["nextCursor"]}


def with_rounds(server: Conversation, method: str, params: dict, common: dict) -> None:
    """A call; where its result asks for input, the input and the call once more."""
    for _ in range(ROUNDS):
        result = server.ask(method, {**params, **common}).get("result", {})
        if result.get("resultType") != "input_required":
            return
        questions = result.get("inputRequests", {})
        params = {**params, "inputResponses": {k: ANSWERS[q["method"]] for k, q in questions.items()}}
        if "requestState" in result:
            params["requestState"] = result["requestState"]


def make_mistakes(server: Conversation, common: dict) -> None:
    server.say("{")
    server.ask("tools/call", {"name": "there is no such tool", "arguments": {}, **common})
    server.ask("resources/read", {"uri": "walk://nowhere", **common})
    server.ask("prompts/get", {"name": "there is no such prompt", **common})


def sample(schema: dict) -> dict:
    """The least that fits the required properties of a simple schema."""
    values = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {
        name: values.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", [])
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"error: {failure}")
