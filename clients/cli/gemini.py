"""Gemini CLI's health check: `gemini mcp list` connects, pings, and says so on stderr."""

import json
import os
import re
from pathlib import Path

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
    }
    home = Path(os.environ["HOME"]) / ".gemini"
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text(json.dumps(settings))
    # In a folder that is not trusted no server is started at all.
    (home / "trustedFolders.json").write_text(json.dumps({os.getcwd(): "TRUST_FOLDER"}))

    said = "".join(job.run([*task["program"], "mcp", "list"]))
    status = re.search(rf"{job.SERVER}: .* - (\w+)$", said, re.MULTILINE)
    if not status or status[1] != "Connected":
        raise job.Failed(said)
    return {"health": status[1]}


job.script(see)
