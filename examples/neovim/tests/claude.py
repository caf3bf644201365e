"""A real Claude Code in a terminal of tmux, without an account: its model is a fake on loopback."""

import json
import os
import subprocess
import sys
from pathlib import Path

from editor import Editor, wait_for

sys.path.append(str(Path(__file__).resolve().parents[3] / "clients" / "cli"))
import fake_model  # noqa: E402

KEY = "sk-ant-not-a-key-0123456789-abcdefghij"


def program() -> str:
    found = os.environ.get("CLAUDE")
    if not found or not Path(found).exists():
        sys.exit("error: set CLAUDE to the program of @anthropic-ai/claude-code (tests.d/88-neovim installs it)")
    return found


class Claude:
    """Claude Code in the workspace of an editor, whose model asks for one call of a tool."""

    def __init__(self, editor: Editor, tool: str = "Write", arguments: dict | None = None, size=(110, 40)):
        self.editor = editor
        self.size = [str(number) for number in size]
        self.model = fake_model.FakeModel(tool, arguments or {})
        self.debug_file = editor.folder / "debug.log"
        self.socket = str(editor.folder / "tmux.sock")

    def __enter__(self) -> "Claude":
        self.model.__enter__()
        workspace = str(self.editor.workspace)
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {workspace: {"hasTrustDialogAccepted": True}},
        }
        (self.editor.home / ".claude.json").write_text(json.dumps(settings))
        self.environment = {
            "HOME": str(self.editor.home),
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "ENABLE_TOOL_SEARCH": "false",
        }
        command = [program(), "--ide", "--permission-mode", "default"]
        command += ["--debug-file", str(self.debug_file)]
        width, height = self.size
        session = ["-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "-c", workspace]
        self.tmux(*session, *command)
        return self

    def __exit__(self, *_failure) -> None:
        self.tmux("kill-server")
        self.model.__exit__()

    def tmux(self, *arguments: str) -> str:
        line = ["tmux", "-S", self.socket, *arguments]
        done = subprocess.run(
            line, env=self.environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, text: str) -> None:
        try:
            wait_for(lambda: text in self.screen(), f"the screen shows `{text}`")
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.screen()}") from None

    def debug(self) -> str:
        return self.debug_file.read_text() if self.debug_file.exists() else ""

    def connected(self) -> None:
        line = 'MCP server "ide": Successfully connected (transport: ws-ide)'
        wait_for(lambda: line in self.debug(), "the debug file says that it connected")
        wait_for(lambda: self.editor.state() == "ready", "the editor is ready")
        self.shows("❯")

    def say(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.shows(text)
        self.tmux("send-keys", "Enter")
