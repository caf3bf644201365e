"""What this example promises, against the real binary and the real programs.

`SABIR=… python3 examples/commands/test.py`; `./test commands` installs the programs first.
The example is copied into a folder of its own, with a history, a database, a PDF and a picture.
"""

import base64
import json
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
from client import Server  # noqa: E402

# The system's own programs only.
ENV = {"PATH": "/usr/bin:/bin"}


def pdf(*pages):
    """A PDF with a line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", None]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for line in pages:
        drawing = f"BT /F1 24 Tf 72 700 Td ({line}) Tj ET"
        objects.append(f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            f"/Contents {len(objects)} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + (table + end).encode()


def ppm(width, height):
    """A picture, red on the left and blue on the right."""
    row = b"\xff\0\0" * (width // 2) + b"\0\0\xff" * (width - width // 2)
    return b"P6 %d %d 255\n" % (width, height) + row * height


def commit(folder, message, author, date, **files):
    for name, text in files.items():
        (folder / name).write_text(text)
    env = {
        **ENV,
        "HOME": str(folder),
        "GIT_AUTHOR_NAME": author,
        "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.org",
        "GIT_AUTHOR_DATE": f"{date}T12:00:00Z",
        "GIT_COMMITTER_NAME": author,
        "GIT_COMMITTER_EMAIL": f"{author.lower()}@example.org",
        "GIT_COMMITTER_DATE": f"{date}T12:00:00Z",
    }
    for command in [["add", *files], ["commit", "--quiet", "--message", message]]:
        subprocess.run(["git", *command], cwd=folder, env=env, check=True)


class Workbench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        outer = pathlib.Path(cls.temporary.name)
        (outer / "secret.pdf").write_bytes(pdf("the secret"))
        cls.folder = folder = outer / "project"
        folder.mkdir()
        for name in ["sabir.toml", "image_info.json", "style.md"]:
            shutil.copy(FOLDER / name, folder)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, env={**ENV, "HOME": str(folder)}, check=True)
        commit(folder, "Add the parser", "Ada", "2025-01-10", parser="1")
        commit(folder, "Fix the parser; see --help", "Grace", "2025-02-10", parser="2")
        commit(folder, "Add a printer", "Ada", "2025-03-10", printer="1")
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "file").write_bytes(b"x" * 100_000)
        (folder / "-rf.pdf").write_bytes(pdf("dashing"))
        (folder / "two.pdf").write_bytes(pdf("first page", "second page"))
        (folder / "broken.pdf").write_bytes(pdf("x")[:-200])
        (folder / "flag.ppm").write_bytes(ppm(300, 200))
        base = sqlite3.connect(folder / "library.db")
        base.executescript(
            "create table books (title text, year int);"
            "insert into books values ('Ulysses', 1922), ('Dune', 1965), ('Emma | Pride', 1815);"
        )
        base.close()
        cls.server = Server(folder, env=ENV)
        cls.hello = cls.server.initialize()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.temporary.cleanup()

    def good(self, tool, **arguments):
        result = self.server.call(tool, **arguments)
        self.assertFalse(result.get("isError", False), result)
        return result

    def text(self, tool, **arguments):
        result = self.good(tool, **arguments)
        self.assertEqual([block["type"] for block in result["content"]], ["text"])
        return result["content"][0]["text"]

    def bad(self, expected, tool, **arguments):
        result = self.server.call(tool, **arguments)
        self.assertIs(result.get("isError"), True, result)
        self.assertIn(expected, result["content"][0]["text"])

    def test_all_three_kinds_are_offered(self):
        offered = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
        self.assertEqual(self.hello["capabilities"], offered)
        tools = self.server.ask("tools/list")["result"]["tools"]
        names = "git_log disk_usage pdf_text image_resize image_info sql_query jq".split()
        self.assertEqual([tool["name"] for tool in tools], names)
        for tool in tools:
            self.assertIs(tool["annotations"]["readOnlyHint"], True)
            self.assertIs(tool["annotations"]["openWorldHint"], False)

    # git_log

    def commits(self, **arguments):
        lines = self.text("git_log", **arguments).splitlines()
        return [line.split(" ", 1)[1] for line in lines]

    def test_history_is_found_by_everything_and_by_nothing(self):
        newest = [
            "2025-03-10 Ada: Add a printer",
            "2025-02-10 Grace: Fix the parser; see --help",
            "2025-01-10 Ada: Add the parser",
        ]
        self.assertEqual(self.commits(), newest)
        self.assertEqual(self.commits(limit=1), newest[:1])
        self.assertEqual(self.commits(oldest_first=True), newest[::-1])
        self.assertEqual(self.commits(oldest_first=False), newest)
        self.assertEqual(self.commits(author="grace"), newest[1:2])
        self.assertEqual(self.commits(since="2025-02-01"), newest[:2])
        self.assertEqual(self.commits(path="printer"), newest[:1])
        self.assertEqual(self.commits(words=["PARSER"]), newest[1:])
        self.assertEqual(self.commits(words=["parser", "add"]), newest[2:])
        self.assertEqual(self.commits(words=["--help"]), newest[1:2])
        self.assertEqual(self.commits(words=[]), newest)
        self.assertEqual(self.commits(words=["nowhere"]), [])

    def test_no_value_becomes_an_option_of_git(self):
        self.bad("must not start with `-`", "git_log", author="--output=stolen")
        self.assertEqual(self.commits(path="--output=stolen"), [])
        self.assertEqual(list(self.folder.glob("stolen*")), [])
        self.bad("maximum of 500", "git_log", limit=501)

    # disk_usage

    def test_disk_usage_is_told_line_by_line(self):
        self.server.notes.clear()
        said = self.text("disk_usage", _meta={"progressToken": 7}, path="deep", depth=2, files=True)
        told = [note["params"] for note in self.server.notes]
        self.assertEqual([note["progress"] for note in told], [1, 2, 3])
        self.assertEqual("\n".join(note["message"] for note in told), said)
        sizes = {path: int(size) for size, path in (line.split("\t") for line in said.splitlines())}
        self.assertEqual(set(sizes), {"deep", "deep/er", "deep/er/file"})
        self.assertGreaterEqual(sizes["deep"], 97)

    def test_disk_usage_of_nothing_is_an_empty_success_by_its_exit_code(self):
        self.assertEqual(self.text("disk_usage", path="nowhere"), "")

    def test_the_sandbox_hides_what_is_outside(self):
        # Its size would be told, if it could be read.
        self.assertNotIn("secret", self.text("disk_usage", path="..", files=True))

    # pdf_text

    def test_the_pages_of_a_pdf(self):
        self.assertIn("first page", self.text("pdf_text", file="two.pdf"))
        only = self.text("pdf_text", file="two.pdf", first=2, last=2)
        self.assertIn("second page", only)
        self.assertNotIn("first page", only)
        self.assertIn("dashing", self.text("pdf_text", file="-rf.pdf"))
        self.bad("(exit code", "pdf_text", file="nowhere.pdf")
        self.bad("(exit code", "pdf_text", file="../secret.pdf")

    def test_complaints_about_a_pdf_go_to_the_log(self):
        self.server.ask("logging/setLevel", {"level": "debug"})
        self.server.notes.clear()
        self.server.call("pdf_text", file="broken.pdf")
        logged = [note["params"] for note in self.server.notes]
        self.assertTrue(logged)
        for line in logged:
            self.assertEqual((line["level"], line["logger"]), ("debug", "pdf_text"))
        self.server.ask("logging/setLevel", {"level": "info"})

    # pictures

    def test_a_picture_is_resized(self):
        for size, expected in [(64, (64, 43)), (4096, (300, 200))]:
            [content] = self.good("image_resize", file="flag.ppm", size=size)["content"]
            self.assertEqual((content["type"], content["mimeType"]), ("image", "image/png"))
            png = base64.b64decode(content["data"])
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(struct.unpack(">II", png[16:24]), expected)

    def test_about_a_picture_in_json(self):
        result = self.good("image_info", file="flag.ppm")
        about = {"width": 300, "height": 200, "format": "PPM"}
        self.assertEqual(result["structuredContent"], about)
        self.assertEqual(json.loads(result["content"][0]["text"]), about)

    def test_what_imagemagick_would_take_for_more_than_a_file_is_refused(self):
        for file in ["label:hello", "https://example.org/x.png", "flag.ppm[1x1]"]:
            self.bad("file", "image_resize", file=file)
        self.bad("(exit code", "image_resize", file="@style.md")

    # sql_query

    def test_sql_gives_a_table(self):
        table = self.text("sql_query", query="select title, year from books where year > 1900 order by year")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        self.assertEqual([rows[0], *rows[2:]], [["title", "year"], ["Ulysses", "1922"], ["Dune", "1965"]])
        self.assertEqual(self.text("sql_query", query="-- a comment\nselect 1 where 0"), "")

    def test_the_database_cannot_be_changed_or_left(self):
        self.bad("readonly", "sql_query", query="delete from books")
        self.bad("readonly", "sql_query", query="create table t (a)")
        for query in [".shell touch stolen", ".output stolen\nselect 1", ".system touch stolen", ".import style.md t"]:
            self.bad("safe", "sql_query", query=query)
        self.bad("safe", "sql_query", query="attach 'stolen' as s")
        self.bad("syntax error", "sql_query", query="select from")
        self.assertEqual(list(self.folder.glob("stolen*")), [])
        self.assertIn("3", self.text("sql_query", query="select count(*) from books"))

    def test_an_answer_beyond_all_bounds_is_cut(self):
        self.bad("more than 262144 bytes", "sql_query", query="select hex(zeroblob(200000))")

    # jq

    def test_json_is_filtered(self):
        data = {"items": [{"n": 1}, {"n": 2.50}], "ü": "é"}
        self.assertEqual(self.text("jq", filter=".items | length", data=data), "2")
        self.assertEqual(self.text("jq", filter=".items[].n", data=data), "1\n2.5")
        self.assertEqual(self.text("jq", filter="-(.items | length)", data=data), "-2")
        self.bad("(exit code", "jq", filter=".items |", data=data)
        self.bad("data", "jq", filter=".", data=[1])

    # prompt and resources

    def test_the_prompt_has_several_messages_and_a_file(self):
        arguments = {"since": "2025-01-31", "reader": "a customer"}
        got = self.server.ask("prompts/get", {"name": "weekly_report", "arguments": arguments})
        request, guide, answer = got["result"]["messages"]
        self.assertIn("since = 2025-01-31", request["content"]["text"])
        self.assertIn("for a customer", request["content"]["text"])
        self.assertEqual(guide["content"]["resource"]["text"], (FOLDER / "style.md").read_text())
        self.assertEqual(answer["role"], "assistant")
        wrong = self.server.ask("prompts/get", {"name": "weekly_report", "arguments": {}})
        self.assertEqual(wrong["error"]["code"], -32602)
        completion = self.server.ask(
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "weekly_report"},
                "argument": {"name": "reader", "value": "a"},
            },
        )
        self.assertEqual(completion["result"]["completion"]["values"], ["a customer"])

    def test_resources_are_read(self):
        def read(uri):
            return self.server.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"]

        self.assertEqual(read("workbench://style"), (FOLDER / "style.md").read_text())
        self.assertEqual(read("workbench://motto"), "Use the tool that is already there.")


if __name__ == "__main__":
    missing = [p for p in "git du pdftotext convert identify sqlite3 jq".split() if not shutil.which(p, path=ENV["PATH"])]
    if missing:
        sys.exit(
            f"error: there is no {', '.join(missing)}; on Debian: "
            "apt-get install git coreutils poppler-utils imagemagick sqlite3 jq"
        )
    unittest.main()
