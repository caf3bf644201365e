"""A real Claude Code connects through sabir to a real Neovim."""

import unittest

from claude import Claude
from editor import Editor, wait_for


class Seeds(unittest.TestCase):
    """The criteria of the seeds 002 and 003 that name the Claude CLI."""

    def test_claude_sends_initialized_after_initialize_then_lists_the_empty_registry(self):
        with Editor("tools = false", is_logged=True) as editor, Claude(editor) as claude:
            claude.connected()
            wait_for(lambda: "tools/list" in editor.log(), "the tools are listed")
            self.assertLess(editor.log().index("initialize"), editor.log().index("tools/list"))
            # It is sent when `notifications/initialized` has come.
            self.assertIn("ClaudeCodeClientConnected", editor.events())


class Working(unittest.TestCase):
    def setUp(self):
        self.editor = self.enterContext(Editor())
        (self.editor.workspace / "a.txt").write_text("one\ntwo\n")
        self.file = self.editor.workspace / "new.txt"
        call = {"file_path": str(self.file), "content": "proposed\n"}
        self.claude = self.enterContext(Claude(self.editor, "Write", call))
        self.claude.connected()

    def propose(self) -> None:
        """The model writes a file; the diff opens in the editor."""
        self.claude.say("write it")
        names = "require('sabir.diff').names()"
        try:
            wait_for(lambda: self.editor.lua(names), "the diff is open")
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.claude.screen()}") from None
        self.assertFalse(self.file.exists())

    def test_selection_and_mention_show_in_its_pane(self):
        self.editor.keys(":edit a.txt<CR>ggVj")
        self.claude.shows("2 lines selected")
        self.editor.keys("<Esc>:1,2SabirMention<CR>")
        self.claude.shows("@a.txt#L1-2")

    def test_an_accepted_write_is_written(self):
        self.propose()
        self.editor.keys(":SabirAccept<CR>")
        wait_for(self.file.exists, "the file is written")
        # Claude Code drops the last newline of a file that is new.
        self.assertEqual(self.file.read_text().rstrip("\n"), "proposed")
        wait_for(lambda: self.claude.model.tool_results, "the model hears of it")

    def test_an_edited_write_is_written_as_edited(self):
        self.propose()
        self.editor.run("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'edited' })")
        self.editor.keys(":write<CR>")
        wait_for(self.file.exists, "the file is written")
        self.assertEqual(self.file.read_text().rstrip("\n"), "edited")
        wait_for(lambda: self.claude.model.tool_results, "the model hears of it")

    def test_a_rejected_write_is_not_written(self):
        self.propose()
        self.editor.keys(":SabirReject<CR>")
        self.claude.shows("User rejected")
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
