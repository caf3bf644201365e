"""Codex, asked through its app server to call a tool; no model takes part.

The app server speaks lines of JSON on stdio, JSON-RPC without the `jsonrpc`
member. `codex mcp list` would be no health check: it connects to nothing.
"""

import json
import os
import subprocess
from pathlib import Path

import job


class AppServer:
    """One conversation with `codex app-server`."""

    def __init__(self, program: list[str]):
        self._last = 0
        self._process = subprocess.Popen(
            [*program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "AppServer":
        return self

    def __exit__(self, *_failure) -> None:
        self._process.stdin.close()
        self._process.wait(job.SECONDS)

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def ask(self, method: str, params: dict) -> dict:
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params})
        # Notifications come in between; the driver's time limit bounds the wait.
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._last and "method" not in message:
                if "error" in message:
                    raise job.Failed(f"{method}: {json.dumps(message['error'])}")
                return message["result"]
        raise job.Failed(f"{method}: the app server ended")

    def _write(self, message: dict) -> None:
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def see(task: dict) -> dict:
    home = Path(os.environ["HOME"]) / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config(task))

    with AppServer(task["program"]) as codex:
        codex.ask("initialize", {"clientInfo": {"name": "sabir-clients", "version": "1.0.0"}})
        codex.notify("initialized")
        thread = codex.ask("thread/start", {"cwd": os.getcwd()})["thread"]["id"]
        servers = codex.ask("mcpServerStatus/list", {})["data"]
        tools = [name for server in servers if server["name"] == job.SERVER for name in server["tools"]]

        def call(tool: str, arguments: dict) -> dict:
            params = {"threadId": thread, "server": job.SERVER, "tool": tool, "arguments": arguments}
            return codex.ask("mcpServer/tool/call", params)

        result = job.call(task, call)
    return {
        "tools": tools,
        "text": job.text_of(result),
        "structured": result.get("structuredContent"),
    }


def config(task: dict) -> str:
    # JSON strings and arrays of strings are TOML as well.
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = f"command = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    else:
        server = f"url = {json.dumps(task['http'])}\n"
    # A model is never asked, but Codex warms up its connection to one.
    return f"""\
model_provider = "nobody"

[model_providers.nobody]
name = "nobody"
base_url = "http://127.0.0.1:9/v1"

[mcp_servers.{job.SERVER}]
{server}"""


job.script(see)
