"""mcp-remote, the bridge that hosts without HTTP put in front of a URL.

Behind an old host in `legacy` and in `auto` (where the bridge itself turns the
host's handshake into the modern era), behind a new host in `modern`. The hosts
are the TypeScript scripts, for which the bridge is a stdio server.
"""

import json
from pathlib import Path

import job

HOSTS = {
    "legacy": ("sdk-v1.mjs", "legacy", []),
    "auto": ("sdk-v1.mjs", "legacy", ["--protocol", "auto"]),
    "modern": ("client-v2.mjs", "2026-07-28", []),
}


def see(task: dict) -> dict:
    node, installed = task.pop("program")
    script, mode, flags = HOSTS[task.pop("mode")]
    bridge = [node, str(Path(installed) / "node_modules/mcp-remote/dist/proxy.js")]
    behind = {**task, "mode": mode, "stdio": [*bridge, task.pop("http"), *flags]}
    stdout, _ = job.run([node, str(Path(installed) / script), json.dumps(behind)])
    return json.loads(stdout)


job.script(see)
