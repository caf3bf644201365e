"""Claude Code, without an account.

`health`: `claude mcp add`, then `claude mcp get`, whose exit code is 0 either
way, so its text is read. `call`: a whole turn against a fake model on
loopback that asks for the tool; what counts is the `tool_result` that Claude
Code sends back to the model.
"""

import json
import os
import re
from pathlib import Path

import fake_model
import job

QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def see(task: dict) -> dict:
    return {"health": health, "call": call}[task["mode"]](task)


def health(task: dict) -> dict:
    claude = task["program"]
    environment = {**os.environ, **QUIET}
    if "stdio" in task:
        add = ["mcp", "add", job.SERVER, "--", *task["stdio"]]
    else:
        kind = "http" if "http" in task else "sse"
        add = ["mcp", "add", "--transport", kind, job.SERVER, task[kind]]
    job.run([*claude, *add], environment)
    said, _ = job.run([*claude, "mcp", "get", job.SERVER], environment)
    status = re.search(r"^\s*Status: (.*)$", said, re.MULTILINE)
    if not status or not re.search(r"✔ Connected$", status[1]):
        raise job.Failed(said)
    return {"health": status[1]}


def call(task: dict) -> dict:
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"type": "stdio", "command": command, "args": arguments}
    else:
        kind = "http" if "http" in task else "sse"
        server = {"type": kind, "url": task[kind]}
    config = Path("mcp.json").absolute()
    config.write_text(json.dumps({"mcpServers": {job.SERVER: server}}))

    prefix = f"mcp__{job.SERVER}__"
    tool = prefix + re.sub(r"[^A-Za-z0-9_-]", "_", task["tool"])
    with fake_model.FakeModel(tool, task["args"]) as model:
        environment = {
            **os.environ,
            **QUIET,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "not-a-key",
            # Else tools are offered by search, and the fake model cannot search.
            "ENABLE_TOOL_SEARCH": "false",
        }
        line = [*task["program"], "-p", "Call the tool.", "--mcp-config", str(config)]
        line += ["--strict-mcp-config", "--allowedTools", f"mcp__{job.SERVER}"]
        said = "".join(job.run(line, environment))
        tools = [name.removeprefix(prefix) for name in model.offered if name.startswith(prefix)]
        results = model.tool_results
    if not results:
        raise job.Failed(f"no result came back; offered: {tools}; Claude said: {said}")
    text = fake_model.text_of(results[-1])
    if results[-1].get("is_error"):
        raise job.Failed(f"the tool answered with an error: {text}")
    # A result with structured content reaches the model as that, and as nothing else.
    if task["structured"]:
        return {"tools": tools, "structured": json.loads(text)}
    return {"tools": tools, "text": text}


job.script(see)
