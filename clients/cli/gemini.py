"""Gemini CLI, without an account.

`health`: `gemini mcp list` connects, pings, and says so on stderr. `call`: a
whole turn against a fake model on loopback that asks for the tool.
"""

import json
import os
import re
from pathlib import Path

import fake_gemini
import job


def see(task: dict) -> dict:
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"command": command, "args": arguments}
    else:
        kind = "http" if "http" in task else "sse"
        server = {"url": task[kind], "type": kind}
    settings = {
        "mcpServers": {job.SERVER: server},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    home = Path(os.environ["HOME"]) / ".gemini"
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text(json.dumps(settings))
    # In a folder that is not trusted no server is started at all.
    (home / "trustedFolders.json").write_text(json.dumps({os.getcwd(): "TRUST_FOLDER"}))

    if task["mode"] == "call":
        return call(task)
    said = "".join(job.run([*task["program"], "mcp", "list"]))
    status = re.search(rf"{job.SERVER}: .* - (\w+)$", said, re.MULTILINE)
    if not status or status[1] != "Connected":
        raise job.Failed(said)
    return {"health": status[1]}


def call(task: dict) -> dict:
    with fake_gemini.FakeGemini(task["tool"], task["args"]) as model:
        environment = {
            **os.environ,
            "GEMINI_API_KEY": "not-a-key",
            "GOOGLE_GEMINI_BASE_URL": model.url,
        }
        # A model of one name: else another request asks which of them to use.
        line = [*task["program"], "--model", "gemini-2.5-flash", "--approval-mode", "yolo"]
        line += ["-p", "Call the tool."]
        said = "".join(job.run(line, environment))
    if not model.tool_results:
        raise job.Failed(f"no result came back; offered: {model.offered}; Gemini said: {said}")
    result = model.tool_results[-1]
    if "error" in result:
        raise job.Failed(f"the tool answered with an error: {result['error']}")
    return {"tools": sorted(model.offered), "text": result.get("output", json.dumps(result))}


job.script(see)
