"""A folder of PDF files, which the real `pdftotext` reads through the real binary.

`SABIR=… python3 tests.d/pdf.py`; `./test commands` installs the program first.
"""

import importlib.util
import pathlib
import sys
import tempfile
import time
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))
from client import PATIENCE, Server  # noqa: E402

spec = importlib.util.spec_from_file_location("commands_example", EXAMPLES / "commands/test.py")
commands = importlib.util.module_from_spec(spec)
spec.loader.exec_module(commands)


class Pdf(unittest.TestCase):
    def test_pages_are_found_and_read_and_broken_files_do_no_harm(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "papers").mkdir()
            whole = commands.pdf("The spring tide", "The neap tide of Quimper")
            (folder / "papers/tides.pdf").write_bytes(whole)
            (folder / "papers/broken.pdf").write_bytes(whole[:40])
            (folder / "sabir.toml").write_text('[[articles]]\npath = "papers"\ncache = "none"\n')
            with Server(folder, env=commands.ENV) as server:
                server.initialize()
                end = time.monotonic() + PATIENCE / 2
                found = ""
                while "tides" not in found and time.monotonic() < end:
                    result = server.call("search_articles", query="quimper")
                    found = result["content"][0]["text"]
                    time.sleep(0.1)
                self.assertIn("`tides`, section `page-2`", found)
                page = server.call("get_article", slug="tides#page-2")["content"][0]["text"]
                self.assertIn("The neap tide of Quimper", page)
                self.assertNotIn("spring", page)
                broken = server.call("get_article", slug="broken")
                self.assertTrue(broken["isError"], broken)


unittest.main()
