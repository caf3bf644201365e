"""The tools, the notifications, and the ends of clients and editors: real Neovim, real client."""

import os
import signal
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

from editor import Editor, end, is_alive, sabir, wait_for
from websockets.exceptions import InvalidStatus

TOOLS = [
    "openFile",
    "openDiff",
    "getCurrentSelection",
    "getLatestSelection",
    "getOpenEditors",
    "getWorkspaceFolders",
    "getDiagnostics",
    "checkDocumentDirty",
    "saveDocument",
    "closeAllDiffTabs",
    "close_tab",
]


class Case(unittest.TestCase):
    def setUp(self):
        self.editor = self.enterContext(Editor())
        self.client = self.editor.connect()
        self.addCleanup(self.client.socket.close)
        self.client.shake_hands()

    def write(self, name: str, text: str) -> str:
        path = self.editor.workspace / name
        path.write_bytes(text.encode())
        return str(path)

    def open_diff(self, text: str, name: str = "a.txt", old: str | None = "old\n") -> int:
        path = str(self.editor.workspace / name)
        if old is not None:
            self.write(name, old)
        arguments = {
            "old_file_path": path,
            "new_file_path": path,
            "new_file_contents": text,
            "tab_name": f"diff of {name}",
        }
        call = self.client.send("tools/call", {"name": "openDiff", "arguments": arguments})
        wait_for(lambda: f"diff of {name}" in self.diffs(), "the diff is open")
        return call

    def diffs(self) -> list[str]:
        return self.editor.lua("require('sabir.diff').names()")


class Tools(Case):
    def test_the_tools_of_an_editor_are_listed(self):
        tools = self.client.request("tools/list")["result"]["tools"]
        self.assertEqual([tool["name"] for tool in tools], TOOLS)

    def test_open_file_selects_lines_and_text(self):
        path = self.write("a.txt", "one\ntwo é three\nfour\n")
        answer = self.client.call("openFile", filePath=path, startLine=2, endLine=3)
        self.assertEqual(answer["result"]["content"][0]["text"], f"Opened file: {path}")
        found = self.client.data("getCurrentSelection")
        self.assertEqual((found["success"], found["filePath"]), (True, path))
        self.assertEqual(found["text"], "two é three\nfour")
        place = found["selection"]
        self.assertEqual(place["start"], {"line": 1, "character": 0})
        self.assertEqual(place["end"], {"line": 2, "character": 4})
        self.editor.keys("<Esc>")
        self.client.call("openFile", filePath=path, startText="é", endText="three")
        found = self.client.data("getCurrentSelection")
        self.assertEqual(found["text"], "é three")
        self.assertEqual(found["selection"]["start"], {"line": 1, "character": 4})
        self.assertEqual(found["selection"]["end"], {"line": 1, "character": 11})
        missing = self.client.call("openFile", filePath="/nowhere/at/all")["result"]
        self.assertTrue(missing["isError"])
        self.assertIn("File not found", missing["content"][0]["text"])
        quiet = self.client.data("openFile", filePath=path, makeFrontmost=False)
        self.assertEqual((quiet["success"], quiet["lineCount"]), (True, 3))

    def test_open_editors_and_folders_are_told(self):
        first, second = self.write("a.txt", "1\n"), self.write("b.py", "2\n")
        self.client.call("openFile", filePath=first)
        self.client.call("openFile", filePath=second)
        tabs = self.client.data("getOpenEditors")["tabs"]
        seen = [(tab["label"], tab["isActive"], tab["isDirty"]) for tab in tabs]
        self.assertEqual(seen, [("a.txt", False, False), ("b.py", True, False)])
        self.assertEqual(tabs[0]["uri"], Path(first).as_uri())
        folders = self.client.data("getWorkspaceFolders")
        self.assertEqual(folders["rootPath"], str(self.editor.workspace))
        self.assertEqual(folders["folders"][0]["uri"], self.editor.workspace.as_uri())

    def test_a_document_is_dirty_until_it_is_saved(self):
        path = self.write("a.txt", "one\n")
        missing = self.client.data("checkDocumentDirty", filePath=path)
        self.assertEqual((missing["success"], missing["message"]), (False, f"Document not open: {path}"))
        self.client.call("openFile", filePath=path)
        self.editor.run("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'two' })")
        self.assertTrue(self.client.data("checkDocumentDirty", filePath=path)["isDirty"])
        saved = self.client.data("saveDocument", filePath=path)
        self.assertEqual((saved["success"], saved["saved"]), (True, True))
        self.assertEqual(Path(path).read_text(), "two\n")
        self.assertFalse(self.client.data("checkDocumentDirty", filePath=path)["isDirty"])

    def test_diagnostics_are_told_and_their_changes_too(self):
        path = self.write("a.txt", "one\ntwo\n")
        self.client.call("openFile", filePath=path)
        self.assertEqual(self.client.data("getDiagnostics"), [])
        self.editor.run(
            "vim.diagnostic.set(vim.api.nvim_create_namespace('t'), 0, { { lnum = 1, col = 0,"
            " end_lnum = 1, end_col = 3, message = 'bad', severity = 1, source = 'test' } })"
        )
        changed = self.client.notification("diagnostics_changed")
        self.assertEqual(changed, {"uris": [Path(path).as_uri()]})
        [file] = self.client.data("getDiagnostics", uri=Path(path).as_uri())
        [found] = file["diagnostics"]
        self.assertEqual((found["message"], found["severity"]), ("bad", "Error"))
        self.assertEqual(found["range"]["end"], {"line": 1, "character": 3})

    def test_arguments_are_checked(self):
        answer = self.client.call("openFile", filePath=7)
        self.assertIn("filePath", str(answer))
        self.assertTrue("error" in answer or answer["result"]["isError"])


class Diffs(Case):
    def test_an_accepted_diff_answers_with_the_text(self):
        call = self.open_diff("new\ntext\n")
        # It answers only when the user has decided; meanwhile other requests go on.
        self.assertIn("result", self.client.request("ping"))
        self.assertFalse(self.client.has_answer(call))
        self.assertEqual(self.editor.lua("#vim.api.nvim_tabpage_list_wins(0)"), 2)
        self.assertEqual(self.editor.lua("vim.wo.diff"), True)
        self.editor.keys(":SabirAccept<CR>")
        self.assertEqual(self.client.texts(call), ["FILE_SAVED", "new\ntext\n"])
        self.assertEqual(self.diffs(), [])
        self.assertEqual(self.editor.lua("#vim.api.nvim_list_tabpages()"), 1)

    def test_an_edited_diff_answers_with_the_edited_text(self):
        call = self.open_diff("new\n")
        self.editor.run("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'edited', 'by hand' })")
        self.editor.keys(":write<CR>")
        self.assertEqual(self.client.texts(call), ["FILE_SAVED", "edited\nby hand\n"])

    def test_a_rejected_diff_says_so(self):
        call = self.open_diff("new\n")
        self.editor.keys(":SabirReject<CR>")
        self.assertEqual(self.client.texts(call), ["DIFF_REJECTED", "diff of a.txt"])

    def test_closing_the_tab_rejects(self):
        call = self.open_diff("new\n")
        self.editor.keys(":tabclose!<CR>")
        self.assertEqual(self.client.texts(call), ["DIFF_REJECTED", "diff of a.txt"])
        self.assertEqual(self.diffs(), [])

    def test_the_client_may_close_diffs(self):
        first, second = self.open_diff("1\n", "a.txt"), self.open_diff("2\n", "b.txt")
        answer = self.client.call("close_tab", tab_name="diff of a.txt")
        self.assertEqual(answer["result"]["content"][0]["text"], "TAB_CLOSED")
        self.assertEqual(self.client.texts(first)[0], "DIFF_REJECTED")
        answer = self.client.call("closeAllDiffTabs")
        self.assertEqual(answer["result"]["content"][0]["text"], "CLOSED_1_DIFF_TABS")
        self.assertEqual(self.client.texts(second)[0], "DIFF_REJECTED")

    def test_every_kind_of_text_comes_back_as_it_was(self):
        for text in ["", "no newline", "a\r\nb\r\n", "a\n\n", "é 😀\ttab\n", "\n", "a\r\nb\n"]:
            with self.subTest(text=text):
                call = self.open_diff(text, old=None)
                self.editor.keys(":SabirAccept<CR>")
                self.assertEqual(self.client.texts(call), ["FILE_SAVED", text])

    def test_a_diff_of_5_mb(self):
        line = "x" * 99 + "\n"
        text = line * 52_429
        self.assertGreater(len(text), 5 << 20)
        call = self.open_diff(text)
        self.editor.keys(":SabirAccept<CR>")
        self.assertEqual(self.client.texts(call), ["FILE_SAVED", text])

    def test_a_cancelled_diff_closes(self):
        call = self.open_diff("new\n")
        self.client.notify("notifications/cancelled", {"requestId": call})
        wait_for(lambda: self.diffs() == [], "the diff is closed")
        self.assertEqual(self.editor.lua("require('sabir.diff').last.outcome"), "DIFF_REJECTED")

    def test_a_pending_diff_is_rejected_when_its_client_goes_and_others_stay(self):
        with self.editor.connect() as other:
            other.shake_hands()
            self.open_diff("mine\n", "a.txt")
            path = str(self.editor.workspace / "b.txt")
            arguments = {"old_file_path": path, "new_file_path": path, "tab_name": "theirs"}
            arguments["new_file_contents"] = "theirs\n"
            theirs = other.send("tools/call", {"name": "openDiff", "arguments": arguments})
            wait_for(lambda: len(self.diffs()) == 2, "both are open")
            # Without a closing handshake, as a process that is killed.
            self.client.socket.socket.shutdown(2)
            wait_for(lambda: self.diffs() == ["theirs"], "the diff of the dead client is closed")
            self.assertEqual(self.editor.lua("require('sabir.diff').last.outcome"), "DIFF_REJECTED")
            self.assertEqual(self.editor.state(), "ready")
            self.editor.keys(":SabirAccept<CR>")
            self.assertEqual(other.texts(theirs), ["FILE_SAVED", "theirs\n"])


class Notifications(Case):
    def test_the_selection_is_told_once_it_rests(self):
        path = self.write("a.txt", "one two\nthree\n")
        self.client.call("openFile", filePath=path)
        first = self.client.notification("selection_changed", lambda p: p["filePath"] == path)
        self.assertTrue(first["selection"]["isEmpty"])
        self.assertEqual(first["fileUrl"], Path(path).as_uri())
        self.editor.keys("ggviwe")
        selected = self.client.notification("selection_changed", lambda p: p["text"])
        self.assertEqual(selected["text"], "one two")
        self.assertEqual(selected["selection"]["end"], {"line": 0, "character": 7})
        self.assertEqual(self.client.data("getLatestSelection")["text"], "one two")

    def test_a_mention_is_told(self):
        path = self.write("a.txt", "one\ntwo\nthree\n")
        self.client.call("openFile", filePath=path)
        self.editor.keys(":2,3SabirMention<CR>")
        mention = {"filePath": path, "lineStart": 1, "lineEnd": 2}
        self.assertEqual(self.client.notification("at_mentioned"), mention)
        self.editor.keys(":SabirMention<CR>")
        self.assertEqual(self.client.notification("at_mentioned"), {"filePath": path})

    def test_what_the_client_notifies_reaches_the_editor(self):
        self.client.notify("ide_connected", {"pid": 7})
        wait_for(lambda: "SabirClientNotified" in self.editor.events(), "the event has fired")
        data = [data for name, data in self.editor.lua("_G.events") if name == "SabirClientNotified"]
        self.assertEqual((data[0]["method"], data[0]["params"]), ("ide_connected", {"pid": 7}))

    def test_the_lock_file_follows_the_folder(self):
        other = self.editor.workspace / "deeper"
        other.mkdir()
        self.editor.run(f"vim.cmd('cd {other}')")
        wait_for(lambda: self.editor.lock()["workspaceFolders"] == [str(other)], "it is rewritten")


class Connecting(Case):
    def test_the_lock_file_is_private_and_complete(self):
        [path] = self.editor.locks()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)
        self.assertEqual([file.name for file in path.parent.iterdir()], [path.name])
        lock = self.editor.lock()
        self.assertEqual(lock["pid"], self.editor.process.pid)
        self.assertEqual(lock["workspaceFolders"], [str(self.editor.workspace)])
        self.assertEqual((lock["ideName"], lock["transport"]), ("Neovim", "ws"))
        self.assertIs(lock["runningInWindows"], False)
        self.assertGreaterEqual(len(lock["authToken"]), 32)

    def test_a_wrong_or_missing_token_is_refused(self):
        for token in ("wrong", "", self.editor.lock()["authToken"][:-1]):
            with self.assertRaises(InvalidStatus) as refused:
                self.editor.connect(token=token)
            self.assertEqual(refused.exception.response.status_code, 401)

    def test_the_subprotocol_is_confirmed_if_it_is_named(self):
        self.assertEqual(self.client.socket.subprotocol, "mcp")
        with self.editor.connect(protocols=()) as silent:
            self.assertIsNone(silent.socket.subprotocol)
            self.assertIn("result", silent.shake_hands())
        with self.assertRaises(InvalidStatus) as refused:
            self.editor.connect(protocols=("graphql-ws",))
        self.assertEqual(refused.exception.response.status_code, 400)

    def test_a_page_of_the_web_is_refused(self):
        with self.assertRaises(InvalidStatus) as refused:
            self.editor.connect(origin="https://evil.example.com")
        self.assertEqual(refused.exception.response.status_code, 403)

    def test_a_second_client_is_served_beside_the_first(self):
        with self.editor.connect() as second:
            second.shake_hands()
            self.assertEqual(len(second.request("tools/list")["result"]["tools"]), len(TOOLS))
            self.editor.run("require('sabir').notify('hello', { n = 1 })")
            self.assertEqual(second.notification("hello"), {"n": 1})
            self.assertEqual(self.client.notification("hello"), {"n": 1})
        wait_for(lambda: self.editor.lua("vim.tbl_count(require('sabir').status().clients)") == 1, "one")
        self.assertEqual(self.editor.state(), "ready")

    def test_an_editor_that_is_killed_takes_everything_with_it(self):
        pid = self.editor.sabir_pid()
        end(self.editor.process.pid, signal.SIGKILL)
        self.editor.process.wait()
        wait_for(lambda: not is_alive(pid), "sabir has ended")
        self.assertEqual(self.editor.locks(), [])
        with self.assertRaises(Exception):
            self.client.request("ping")

    def test_the_lock_file_is_removed_on_every_signal_and_the_editor_learns(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number), Editor() as editor:
                pid = editor.sabir_pid()
                end(pid, number)
                wait_for(lambda: editor.state() == "stopped", "the editor knows")
                self.assertEqual(editor.locks(), [])
                self.assertIn("SabirStopped", editor.events())

    def test_a_stale_lock_file_is_cleaned_at_the_next_start(self):
        with tempfile.TemporaryDirectory() as home, Editor(home=Path(home)) as killed:
            pid, [stale] = killed.sabir_pid(), killed.locks()
            foreign = stale.with_name("1.lock")
            foreign.write_text('{"pid":1,"workspaceFolders":[],"ideName":"Other","transport":"ws"}')
            end(pid, signal.SIGKILL)
            wait_for(lambda: killed.state() == "stopped", "the editor knows")
            self.assertIn(stale, killed.locks())
            killed.run("require('sabir').start()")
            wait_for(lambda: killed.lua("require('sabir').status().listening"), "it listens again")
            self.assertNotIn(stale, killed.locks())
            self.assertIn(foreign, killed.locks(), "others' are not ours to remove")
            foreign.unlink()


class Help(Case):
    def test_checkhealth_says_that_all_is_well(self):
        self.editor.run("vim.cmd('checkhealth sabir')")
        text = "\n".join(self.editor.lua("vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
        for expected in ("Neovim 0.7 or later", "listening on ws://", "lock file", "claude-code is"):
            self.assertIn(expected, text)
        self.assertNotIn("ERROR", text)

    def test_help_has_all_commands(self):
        self.editor.run(f"vim.cmd('helptags {Path(__file__).resolve().parents[1] / 'doc'}')")
        tags = Path(__file__).resolve().parents[1] / "doc" / "tags"
        self.addCleanup(tags.unlink)
        for command in self.editor.lua("vim.tbl_keys(vim.api.nvim_get_commands({}))"):
            if command.startswith("Sabir"):
                self.editor.run(f"vim.cmd('help :{command}')")
        self.editor.run("vim.cmd('help sabir')")

    def test_a_missing_program_is_named(self):
        said = subprocess.run(
            ["nvim", "--headless", "-u", "NONE", "--cmd", f"set rtp^={Path(__file__).resolve().parents[1]}",
             "-c", "lua require('sabir').setup({ command = 'no-such-sabir' })", "-c", "qa!"],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
            env={"HOME": str(self.editor.home), "PATH": os.environ["PATH"]},
        )  # fmt: skip
        self.assertIn("no program `no-such-sabir`", said.stderr)
        self.assertTrue(sabir())


if __name__ == "__main__":
    unittest.main()
