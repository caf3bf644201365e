"""A server under test, started by its command line and ended by its id.

The command holds `{addr}`, which becomes a loopback address with port 0: the
system chooses a free port and the server says on stderr (or stdout) which.
"""

import re
import shlex
import subprocess
import threading
from collections import deque
from pathlib import Path

from . import sandbox

ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(\d{2,5})\b")
SECONDS_TO_START = 30


class NotStarted(Exception):
    """The server ended, or never said where it listens."""


class Server:
    """Runs from `with` to its end; `addr` is where it listens."""

    def __init__(self, command: str, folder: Path | None = None):
        line = command.replace("{addr}", "127.0.0.1:0")
        self._listening = threading.Event()
        self._lines: deque[str] = deque(maxlen=200)
        self.addr = ""
        self._process = subprocess.Popen(
            shlex.split(line),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Server":
        in_time = self._listening.wait(SECONDS_TO_START)
        if not self.addr:
            self._end()
            why = "ended" if in_time else f"named no address within {SECONDS_TO_START} s"
            raise NotStarted(f"the server {why}:\n{self.said()}")
        return self

    def __exit__(self, *_failure) -> None:
        self._end()

    def alive(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        """The last lines it wrote."""
        return "\n".join(list(self._lines)[-15:]) or "(it wrote nothing)"

    def _read(self) -> None:
        # Reading goes on after the address: a full pipe would stop the server.
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line.rstrip())
                if not self.addr and (found := ADDRESS.search(line)) and int(found[2]) != 0:
                    self.addr = found[0]
                    self._listening.set()
        self._listening.set()

    def _end(self) -> None:
        sandbox.end_group(self._process)
