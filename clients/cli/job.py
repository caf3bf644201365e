"""The contract of `clients/node/job.mjs`, for clients that are programs.

The job's `program` is how the client is started. The scripts run inside a
sandbox: HOME is theirs alone and the working folder is empty.
"""

import json
import subprocess
import sys

SERVER = "sabir"  # the name under which the clients know the server
SECONDS = 45  # for one command of a client; the driver bounds the whole


class Failed(Exception):
    """The client did not do what was asked; the text says what it said."""


def read() -> dict:
    return json.loads(sys.argv[1])


def tell(**seen) -> None:
    print(json.dumps(seen))


def run(command: list[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """Runs one command of a client to its end."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        env=environment,
    )
    if done.returncode != 0:
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def text_of(result: dict) -> str:
    """The text blocks of a tool's result."""
    blocks = [block["text"] for block in result.get("content", []) if block.get("type") == "text"]
    text = "\n".join(blocks)
    if result.get("isError"):
        raise Failed(f"the tool answered with an error: {text}")
    return text
