"""MCP Inspector's command line: exit codes that mean something, and a critic of schemas.

Modes are its own: legacy, auto, modern. Three commands each: `initialize` for
the revision, `tools/list --strict` (which fails on schemas that are not
portable), `tools/call`.
"""

import json
import os
from pathlib import Path

import job

KINDS = {"http": "streamable-http", "sse": "sse"}


def main() -> None:
    task = job.read()
    config = Path("inspector.json").absolute()
    # From a file, because a server's own flags would be read as the Inspector's.
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"type": "stdio", "command": command, "args": arguments}
    else:
        kind = next(kind for kind in KINDS if kind in task)
        server = {"type": KINDS[kind], "url": task[kind]}
    config.write_text(json.dumps({"mcpServers": {job.SERVER: server}}))

    def ask(method: str, *more: str) -> dict:
        line = [*task["program"], "--cli", "--config", str(config), "--server", job.SERVER]
        line += ["--protocol-era", task["mode"], "--format", "json", "--method", method, *more]
        environment = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory"}
        return json.loads(job.run(line, environment).stdout)["result"]

    agreed = ask("initialize")
    tools = ask("tools/list", "--strict")["tools"]
    arguments = json.dumps(task["args"])
    result = ask("tools/call", "--tool-name", task["tool"], "--tool-args-json", arguments)
    job.tell(
        revision=agreed["protocolVersion"],
        tools=[tool["name"] for tool in tools],
        text=job.text_of(result),
        structured=result.get("structuredContent"),
    )


main()
