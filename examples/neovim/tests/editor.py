"""A real, headless Neovim with the plug-in, and a real WebSocket client for it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from websockets.sync.client import connect

PLUGIN = Path(__file__).resolve().parents[1]
SECONDS = 60  # nothing takes longer, even on a busy machine
TOKEN_HEADER = "x-claude-code-ide-authorization"


def sabir() -> str:
    found = os.environ.get("SABIR") or shutil.which("sabir")
    if not found:
        sys.exit("error: no program `sabir` (set SABIR, or put it on the PATH)")
    return str(Path(found).absolute())


def wait_for(condition, what: str, seconds: float = SECONDS):
    """The first value of `condition()` that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds} s: {what}")


class Editor:
    """Neovim in a home and a workspace of its own. Use it with `with`."""

    def __init__(self, options: str = "", home: Path | None = None, is_logged: bool = False):
        self.is_logged = is_logged
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="sabir-nvim-"))
        self.home = home or self.folder / "home"
        self.workspace = self.folder / "work"
        self.socket = self.folder / "nvim.sock"

    def __enter__(self) -> "Editor":
        self.home.mkdir(exist_ok=True)
        self.workspace.mkdir()
        init = self.folder / "init.lua"
        init.write_text(
            f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
            "vim.opt.swapfile = false\n"
            "_G.events = {}\n"
            "vim.api.nvim_create_autocmd('User', { pattern = { 'ClaudeCode*', 'Sabir*' },\n"
            "  callback = function(a) table.insert(_G.events, { a.match, vim.g.sabir_event }) end })\n"
            f"require('sabir').setup({{ command = {self._command()}, {self.options} }})\n"
        )
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        self.process = self.spawn(["--listen", str(self.socket), "-u", str(init)], environment)
        try:
            wait_for(self._responds, "Neovim listens")
            wait_for(lambda: self.lua("require('sabir').status().listening"), "sabir listens")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_failure) -> None:
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not self.locks(), "the lock file is removed when the editor is gone")
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, arguments: list[str], environment: dict) -> subprocess.Popen:
        return subprocess.Popen(
            ["nvim", "--headless", *arguments],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _command(self) -> str:
        """The program in Lua; what it logs is in a file."""
        if not self.is_logged:
            return json.dumps(sabir())
        line = f'exec {shlex.quote(sabir())} --log debug "$@" 2>>{self.folder}/sabir.log'
        words = ", ".join(json.dumps(word) for word in ["sh", "-c", line, "sabir"])
        return f"{{ {words} }}"

    def log(self) -> str:
        return (self.folder / "sabir.log").read_text()

    def _responds(self) -> bool:
        try:
            return self.socket.exists() and self.lua("true")
        except AssertionError:
            return False

    def lua(self, expression: str):
        """The value of a Lua expression in the editor."""
        wrap = "(function(v) if v == nil then v = vim.NIL end return vim.json.encode({ v = v }) end)"
        return self._eval(f"{wrap}({expression})")["v"]

    def run(self, statements: str) -> None:
        self._eval(f"(function() {statements} end)() or '{{}}'")

    def _eval(self, code: str):
        quoted = code.replace("'", "''")
        said = subprocess.run(
            ["nvim", "--server", str(self.socket), "--remote-expr", f"luaeval('{quoted}')"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        text = said.stdout or said.stderr
        try:
            return json.loads(text)
        except ValueError:
            raise AssertionError(f"{code}: {text}") from None

    def keys(self, keys: str) -> None:
        subprocess.run(
            ["nvim", "--server", str(self.socket), "--remote-send", keys],
            check=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )

    def state(self) -> str:
        return self.lua("require('sabir').state()")

    def events(self) -> list:
        return [name for name, *_ in self.lua("_G.events")]

    def locks(self) -> list[Path]:
        return sorted((self.home / ".claude" / "ide").glob("*.lock"))

    def lock(self) -> dict:
        return json.loads(self.locks()[0].read_text())

    def port(self) -> int:
        return int(self.locks()[0].stem)

    def connect(self, token: str | None = None, protocols=("mcp",), **options) -> "Client":
        token = self.lock()["authToken"] if token is None else token
        headers = {TOKEN_HEADER: token} if token else {}
        return Client(self.port(), headers, protocols, **options)

    def sabir_pid(self) -> int:
        return self.lock()["sabirPid"]


class Client:
    """A connected client, which can send any message."""

    def __init__(self, port: int, headers: dict, protocols, **options):
        self.socket = connect(
            f"ws://127.0.0.1:{port}",
            subprotocols=list(protocols) or None,
            additional_headers=headers,
            max_size=None,
            open_timeout=SECONDS,
            **options,
        )
        self.last = 0
        self.notifications: list[dict] = []
        self.answers: dict[int, dict] = {}

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_failure) -> None:
        self.socket.close()

    def send(self, method: str, params: dict | None = None) -> int:
        """Sends a request, and gives its id."""
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}
        self.socket.send(json.dumps(message))
        return self.last

    def notify(self, method: str, params: dict | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.socket.send(json.dumps(message))

    def _read(self, seconds: float) -> dict:
        message = json.loads(self.socket.recv(timeout=seconds))
        if "method" in message:
            self.notifications.append(message)
        else:
            self.answers[message["id"]] = message
        return message

    def answer(self, request: int, seconds: float = SECONDS) -> dict:
        while request not in self.answers:
            self._read(seconds)
        return self.answers.pop(request)

    def has_answer(self, request: int) -> bool:
        try:
            while True:
                self._read(0.3)
        except TimeoutError:
            return request in self.answers

    def request(self, method: str, params: dict | None = None) -> dict:
        return self.answer(self.send(method, params))

    def notification(self, method: str, accept=lambda params: True) -> dict:
        """The next notification of that method whose params are acceptable."""
        while True:
            for nth, message in enumerate(self.notifications):
                if message["method"] == method and accept(message.get("params")):
                    del self.notifications[: nth + 1]
                    return message.get("params")
            self._read(SECONDS)

    def shake_hands(self) -> dict:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {}, "elicitation": {}},
            "clientInfo": {"name": "claude-code", "version": "1.0.0"},
        }
        answer = self.request("initialize", hello)
        self.notify("notifications/initialized")
        return answer

    def call(self, tool: str, **arguments) -> dict:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def data(self, tool: str, **arguments):
        """The JSON inside the one text of a result."""
        answer = self.call(tool, **arguments)
        [block] = answer["result"]["content"]
        assert not answer["result"].get("isError"), answer
        return json.loads(block["text"])

    def texts(self, request: int) -> list[str]:
        return [block["text"] for block in self.answer(request)["result"]["content"]]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"


def end(pid: int, number=signal.SIGTERM) -> None:
    os.kill(pid, number)
