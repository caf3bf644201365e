"""Gemini CLI's health check: `gemini mcp list` connects, pings, and says so on stderr."""

import json
import os
import re
from pathlib import Path

import job

KEYS = {"http": "httpUrl", "sse": "url"}


def main() -> None:
    task = job.read()
    if "stdio" in task:
        command, *arguments = task["stdio"]
        server = {"command": command, "args": arguments}
    else:
        kind = next(kind for kind in KEYS if kind in task)
        server = {KEYS[kind]: task[kind]}
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

    done = job.run([*task["program"], "mcp", "list"])
    said = done.stdout + done.stderr
    status = re.search(rf"{job.SERVER}: .* - (\w+)$", said, re.MULTILINE)
    if not status or status[1] != "Connected":
        raise job.Failed(said)
    job.tell(health=status[1])


main()
