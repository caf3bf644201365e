"""One client's run: a home of its own, a bare environment, an end in time.

Everything a client starts inherits its HOME, because every one of them hands
HOME on even where it hands on little else. So a home names its processes: what
still bears it after the client has gone is ours to end, by id, and nothing
else is.
"""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

GRACE = 5.0  # seconds that a server has to follow its client

# A proxy that does not exist: a request that would leave the machine fails at once.
NOWHERE = "http://127.0.0.1:9"
LOOPBACK = "127.0.0.1,localhost,::1"


@dataclass
class Ended:
    """How a run ended."""

    code: int | None  # None: it was ended when its time was up
    stdout: str
    stderr: str
    seconds: float
    left_behind: list[str] = field(default_factory=list)  # command lines that outlived the grace


class Sandbox:
    """A temporary home, removed at the end together with what still runs in it."""

    def __init__(self, path: list[Path]):
        self.home = Path(tempfile.mkdtemp(prefix="sabir-client-"))
        self.folder = self.home / "project"
        self.folder.mkdir()
        (self.home / "tmp").mkdir()
        self.environment = {
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "PATH": os.pathsep.join([*map(str, path), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1",  # the scripts are in the repository
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK),
        }

    def __enter__(self) -> "Sandbox":
        _open.add(self)
        return self

    def __exit__(self, *_failure) -> None:
        _open.discard(self)
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, command: list[str], seconds: float) -> Ended:
        """Runs `command` to its end, or ends it; then looks for leftover processes."""
        start = time.monotonic()
        # Files and not pipes: a process that outlives the client may hold its
        # output open, and a pipe would then be waited for to the time limit.
        with open(self.home / "stdout", "w+b") as stdout, open(self.home / "stderr", "w+b") as stderr:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
                end_group(process)
            taken = time.monotonic() - start
            left_behind = self._left_behind()
            return Ended(code, _text(stdout), _text(stderr), taken, left_behind)

    def end(self) -> None:
        """Ends all processes in this sandbox at once, and waits for them."""
        deadline = time.monotonic() + GRACE
        while (pids := _pids_at_home(self.home)) and time.monotonic() < deadline:
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            _wait_for_end(pids, deadline)

    def _left_behind(self) -> list[str]:
        """Waits until the client's processes have exited, and ends the others."""
        deadline = time.monotonic() + GRACE
        while (pids := _pids_at_home(self.home)) and time.monotonic() < deadline:
            _wait_for_end(pids, deadline)
        lines = [_command_line(pid) for pid in pids]
        self.end()
        return [line for line in lines if line]


_open: set[Sandbox] = set()


def end_all() -> None:
    """Ends the processes of all sandboxes, when the driver itself is interrupted."""
    for box in list(_open):
        box.end()


def end_group(process: subprocess.Popen) -> None:
    """Stops a process that leads its own group: SIGTERM, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(GRACE)
            return
        except subprocess.TimeoutExpired:
            continue


def _pids_at_home(home: Path) -> list[int]:
    """The processes whose environment names this home (Linux's /proc; none elsewhere)."""
    mark = f"HOME={home}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in _environment(entry).split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # gone meanwhile, or another user's
            continue
    return found


def _environment(process: Path) -> bytes:
    """The environment of a process, once it has one.

    In the middle of an `exec` the new program does not have its environment
    yet: it reads as empty, and the process would not be found. So an empty one
    is believed only if the kernel counts no byte of it either.
    """
    while not (environment := (process / "environ").read_bytes()) and not _has_none(process):
        time.sleep(0.0005)
    return environment


def _has_none(process: Path) -> bool:
    """Whether a process has no memory (a zombie), or a program and no environment: proc_pid_stat(5)."""
    numbers = (process / "stat").read_text().rpartition(")")[2].split()
    memory, code, start, end = (int(numbers[place - 3]) for place in (23, 26, 50, 51))
    return memory == 0 or (code != 0 and start == end)


def _wait_for_end(pids: list[int], deadline: float) -> None:
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
        finally:
            os.close(handle)


def _command_line(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return line.replace(b"\0", b" ").decode(errors="replace").strip()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _text(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
