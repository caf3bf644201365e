"""MCP Inspector's command line: exit codes that mean something, and a critic of schemas.

Modes are its own: legacy, auto, modern. Three commands each: `initialize` for
the revision, `tools/list --strict` (which fails on schemas that are not
portable), `tools/call`.
"""

import json
import os
from pathlib import Path

import job


def see(task: dict) -> dict:
    config = Path("inspector.json").absolute()
    # From a file, because a server's own flags would be read as the Inspector's.
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"type": "stdio", "command": command, "args": arguments}
    else:
        kind = "http" if "http" in task else "sse"
        server = {"type": "streamable-http" if kind == "http" else kind, "url": task[kind]}
    config.write_text(json.dumps({"mcpServers": {job.SERVER: server}}))

    def ask(method: str, *more: str) -> dict:
        line = [*task["program"], "--cli", "--config", str(config), "--server", job.SERVER]
        line += ["--protocol-era", task["mode"], "--format", "json", "--method", method, *more]
        environment = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory"}
        return json.loads(job.run(line, environment)[0])["result"]

    agreed = ask("initialize")
    tools = ask("tools/list", "--strict")["tools"]
    arguments = json.dumps(task["args"])
    result = ask("tools/call", "--tool-name", task["tool"], "--tool-args-json", arguments)
    return {
        "revision": agreed["protocolVersion"],
        "tools": [tool["name"] for tool in tools],
        "text": job.text_of(result),
        "structured": result.get("structuredContent"),
    }


job.script(see)
