"""Claude Code, without an account.

`health`: `claude mcp add`, then `claude mcp get`, whose exit code is 0 either
way, so its text is read. `call`: a whole turn against a fake model on
loopback that asks for the tool; what counts is the `tool_result` that Claude
Code sends back to the model. `read`: the same with a model that answers a
question from a folder of articles.
"""

import json
import os
import re
from pathlib import Path

import fake_model
import job

QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def see(task: dict) -> dict:
    return {"health": health, "call": call, "read": read}[task["mode"]](task)


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


PREFIX = f"mcp__{job.SERVER}__"


def turn(task: dict, model: fake_model.FakeModel) -> list[dict]:
    """One turn of Claude Code with the server of the task; what the model was given."""
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"type": "stdio", "command": command, "args": arguments}
    else:
        kind = "http" if "http" in task else "sse"
        server = {"type": kind, "url": task[kind]}
    config = Path("mcp.json").absolute()
    config.write_text(json.dumps({"mcpServers": {job.SERVER: server}}))
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
    if not model.tool_results:
        raise job.Failed(f"no result came back; offered: {model.offered}; Claude said: {said}")
    for result in model.tool_results:
        if result.get("is_error"):
            raise job.Failed(f"the tool answered with an error: {fake_model.text_of(result)}")
    return model.tool_results


def call(task: dict) -> dict:
    tool = PREFIX + re.sub(r"[^A-Za-z0-9_-]", "_", task["tool"])
    with fake_model.FakeModel(tool, task["args"]) as model:
        text = fake_model.text_of(turn(task, model)[-1])
        tools = [name.removeprefix(PREFIX) for name in model.offered if name.startswith(PREFIX)]
    # A result with structured content reaches the model as that, and as nothing else.
    if task["structured"]:
        return {"tools": tools, "structured": json.loads(text)}
    return {"tools": tools, "text": text}


def read(task: dict) -> dict:
    """Searches, reads the section that was found, and follows its first link."""

    def section(results: list[str]) -> tuple[str, dict]:
        found = re.search(r"^1\. .*?\(`([^`]+)`, section `([^`]+)`\)", results[-1], re.MULTILINE)
        if not found:
            raise ValueError(f"the search names no section: {results[-1]}")
        return f"{PREFIX}get_article", {"slug": found[1], "section": found[2]}

    def link(results: list[str]) -> tuple[str, dict]:
        found = re.search(r"\]\(([^)]+)\)", results[-1])
        if not found:
            raise ValueError(f"the section has no link: {results[-1]}")
        return f"{PREFIX}get_article", {"slug": found[1]}

    first = f"{PREFIX}search_articles"
    with fake_model.FakeModel(first, {"query": task["question"]}, [section, link]) as model:
        return {"texts": [fake_model.text_of(result) for result in turn(task, model)]}


job.script(see)
