"""The contract of `clients/node/job.mjs`, for clients that are programs.

The job's `program` is how the client is started. The scripts run inside a
sandbox: HOME is theirs alone and the working folder is empty.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable

SERVER = "sabir"  # the name under which the clients know the server
# For one command of a client; the driver bounds the whole.
SECONDS = int(os.environ.get("SABIR_JOB_SECONDS", "45"))


class Failed(Exception):
    """The client failed; the text is its output."""


def script(see: Callable[[dict], dict]) -> None:
    """Runs a script's work on its job and turns its end into an exit code."""
    try:
        seen = see(json.loads(sys.argv[1]))
    except Failed as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    print(json.dumps(seen))


def run(command: list[str], environment: dict[str, str] | None = None) -> tuple[str, str]:
    """Runs one command of a client to its end; gives stdout and stderr."""
    # Files and not pipes, which a server that outlives its client would hold open.
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:

        def said() -> tuple[str, str]:
            stdout.seek(0)
            stderr.seek(0)
            return stdout.read(), stderr.read()

        line = " ".join(command)
        files = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
        try:
            done = subprocess.run(command, **files, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired as late:
            raise Failed("\n".join([f"`{line}` did not end within {SECONDS} s", *said()])) from late
        if done.returncode != 0:
            raise Failed("\n".join([f"`{line}` ended with {done.returncode}", *said()]))
        return said()


def call(task: dict, tool_call: Callable[[str, dict], dict]) -> dict:
    """Calls the tool. With `follow`, a handle in words is followed to the result, as a model would."""
    result = tool_call(task["tool"], task["args"])
    handle = re.search(r"`(await_result)` with (\{[^}]*\})", text_of(result))
    if not task.get("follow") or not handle:
        return result
    while "Call `await_result` again" in text_of(result := tool_call(handle[1], json.loads(handle[2]))):
        pass
    result["content"].insert(0, {"type": "text", "text": "by await_result:"})
    return result


def text_of(result: dict) -> str:
    """The text blocks of a tool's result."""
    blocks = [block["text"] for block in result.get("content", []) if block.get("type") == "text"]
    text = "\n".join(blocks)
    if result.get("isError"):
        raise Failed(f"the tool answered with an error: {text}")
    return text
