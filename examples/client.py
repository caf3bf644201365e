"""A client for the tests of the examples: one server, spoken to through its pipes."""

import json
import os
import pathlib
import subprocess
import threading

EXAMPLES = pathlib.Path(__file__).resolve().parent
PATIENCE = 60  # seconds; a server that is stuck fails its test


def sabir():
    """The binary that is tested."""
    binary = os.environ.get("SABIR")
    if not binary:
        raise SystemExit("error: SABIR does not say where the binary is; run ./test, or set it")
    return binary


class Server:
    """`sabir serve FOLDER/sabir.toml --stdio`, started and, at the end, stopped."""

    def __init__(self, folder, env=None):
        self.process = subprocess.Popen(
            [sabir(), "serve", str(pathlib.Path(folder) / "sabir.toml"), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.guard = threading.Timer(PATIENCE, self.process.kill)
        self.guard.start()
        self.last_id = 0
        self.notes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.guard.cancel()
        self.process.stdout.close()

    def send(self, text):
        """Sends a line as it is."""
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        """The next message of any kind."""
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the server has left")
        return json.loads(line)

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.send(json.dumps(message))

    def ask(self, method, params=None):
        """The answer to a request. Notifications before it are kept in `notes`."""
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message))
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id and "method" not in answer:
                return answer
            self.notes.append(answer)

    def initialize(self, revision="2025-11-25"):
        client = {"name": "examples", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        answer = self.ask("initialize", params)
        self.notify("notifications/initialized")
        return answer["result"]

    def call(self, tool, _meta=None, **arguments):
        """The result of a tool."""
        params = {"name": tool, "arguments": arguments}
        if _meta:
            params["_meta"] = _meta
        return self.ask("tools/call", params)["result"]
