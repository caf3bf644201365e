"""The promises of this example: the mixed relay in both eras, and the sessions of `sessions.toml` over
real HTTP.

`SABIR=… python3 examples/relay/test.py`, with `mcp-server-everything`, `sabir` and a `python3` that has
`mcp` in the PATH; `./test relay` installs all of it.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
from client import Server, sabir  # noqa: E402

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
}


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.1)


class Mixed(unittest.TestCase):
    """Old and new servers behind one endpoint."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(FOLDER)
        cls.addClassCleanup(cls.server.__exit__)
        names = {"old_echo", "new_add", "search_articles"}
        if not wait_for(lambda: names <= {tool["name"] for tool in cls.tools()}):
            raise AssertionError(f"not listed: {names - {tool['name'] for tool in cls.tools()}}")

    @classmethod
    def modern(cls, method, **params):
        answer = cls.server.ask(method, {**params, "_meta": MODERN})
        assert "result" in answer, answer
        return answer["result"]

    @classmethod
    def tools(cls):
        return cls.modern("tools/list")["tools"]

    def call(self, name, arguments, **more):
        return self.modern("tools/call", name=name, arguments=arguments, **more)

    def test_tools_of_all_servers_are_called_in_the_modern_era(self):
        self.assertIn("hello", self.call("old_echo", {"message": "hello"})["content"][0]["text"])
        self.assertEqual(self.call("new_add", {"a": 2, "b": 3})["content"][0]["text"], "5")
        self.assertFalse(self.call("search_articles", {"query": "cancellation"}).get("isError"))

    def test_tools_of_all_servers_are_called_in_the_legacy_era(self):
        for name, arguments, part in [
            ("old_echo", {"message": "hello"}, "hello"),
            ("new_add", {"a": 2, "b": 3}, "5"),
        ]:
            answer = self.server.ask("tools/call", {"name": name, "arguments": arguments})
            self.assertIn(part, answer["result"]["content"][0]["text"])

    def test_integers_of_any_size_arrive(self):
        answer = self.call("new_add", {"a": 2**63, "b": 2**64})
        self.assertEqual(answer["content"][0]["text"], str(2**63 + 2**64))

    def test_a_denied_tool_is_not_there(self):
        self.assertNotIn("new_internal_reset", {tool["name"] for tool in self.tools()})

    def test_prompts_and_resources_cross(self):
        prompt = self.modern("prompts/get", name="new_review", arguments={"code": "x = 1"})
        self.assertIn("x = 1", json.dumps(prompt))
        motto = self.modern("resources/read", uri="motto://en")
        self.assertEqual(motto["contents"][0]["text"], "Serve what you have")

    def test_a_legacy_server_asks_a_modern_client_in_the_middle_of_a_call(self):
        names = {tool["name"] for tool in self.tools()}
        tool = next(n for n in sorted(names) if n.startswith("old_") and "elicit" in n)
        first = self.call(tool, {})
        self.assertEqual(first["resultType"], "input_required", first)
        (key,) = first["inputRequests"]
        self.assertEqual(first["inputRequests"][key]["method"], "elicitation/create")
        last = self.call(
            tool, {}, requestState=first["requestState"], inputResponses={key: {"action": "decline"}}
        )
        self.assertEqual(last["resultType"], "complete", last)
        self.assertIn("decline", json.dumps(last).lower())


class Sessions(unittest.TestCase):
    """`sessions.toml` over HTTP: one revision, strict sessions."""

    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen(
            [sabir(), "serve", str(FOLDER / "sessions.toml"), "--http", "127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True,
        )
        cls.addClassCleanup(cls.stop)
        cls.url = next(line.split(" on ")[1].strip() for line in cls.process.stderr if " on " in line)
        wait_for(lambda: cls.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[2]["result"]["tools"])

    @classmethod
    def stop(cls):
        cls.process.terminate()
        cls.process.wait()
        cls.process.stderr.close()

    @classmethod
    def send(cls, method, body=None, session=None):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if session:
            headers["mcp-session-id"] = session
        request = urllib.request.Request(cls.url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, dict(answer.headers.items()), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers.items()), error.read()

    @classmethod
    def post(cls, message, session=None):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        status, headers, text = cls.send("POST", body, session)
        if headers.get("Content-Type", headers.get("content-type", "")).startswith("text/event-stream"):
            text = text.split(b"data: ", 1)[1].split(b"\n", 1)[0]
        return status, {key.lower(): value for key, value in headers.items()}, json.loads(text or b"null")

    def open(self, ready=True):
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        status, headers, answer = self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        self.assertEqual((status, answer["result"]["protocolVersion"]), (200, "2025-03-26"))
        session = headers["mcp-session-id"]
        if ready:
            status, _, _ = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
            self.assertEqual(status, 202)
        return session

    def add(self, session, a=2, b=3):
        params = {"name": "add", "arguments": {"a": a, "b": b}}
        return self.post({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, session)

    def test_a_session_is_opened_used_and_ended(self):
        session = self.open()
        self.assertEqual(len(session), 32)
        status, _, answer = self.add(session)
        self.assertEqual((status, answer["result"]["content"][0]["text"]), (200, "5"))
        self.assertIn(self.send("DELETE", session=session)[0], (200, 202, 204))
        self.assertEqual(self.add(session)[0], 404)

    def test_a_call_needs_a_ready_session_and_a_list_does_not(self):
        self.assertEqual(self.add(None)[0], 400)
        self.assertEqual(self.add("x" * 32)[0], 404)
        _, _, answer = self.add(self.open(ready=False))
        self.assertIn("error", answer)
        for method in ["ping", "tools/list"]:
            status, _, answer = self.post({"jsonrpc": "2.0", "id": 3, "method": method})
            self.assertEqual((status, "result" in answer), (200, True), method)

    def test_a_null_id_is_a_request_and_malformed_input_is_an_error(self):
        session = self.open()
        status, _, answer = self.post({"jsonrpc": "2.0", "id": None, "method": "ping"}, session)
        self.assertEqual((status, answer["id"], answer["result"]), (200, None, {}))
        for body, code in [(b"{", -32700), (b'{"jsonrpc":"2.0","id":1}', -32600)]:
            _, _, answer = self.post(body, session)
            self.assertEqual(answer["error"]["code"], code)

    def test_an_unknown_tool_is_a_result(self):
        params = {"name": "nothing", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        _, _, answer = self.post(message, self.open())
        self.assertTrue(answer["result"]["isError"])

    def test_many_clients_have_sessions_at_once(self):
        def work(nth):
            session = self.open()
            _, _, answer = self.add(session, nth, 1000)
            self.send("DELETE", session=session)
            return session, answer["result"]["content"][0]["text"]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            done = list(pool.map(work, range(64)))
        self.assertEqual(len({session for session, _ in done}), 64)
        self.assertEqual([text for _, text in done], [str(nth + 1000) for nth in range(64)])


if __name__ == "__main__":
    os.chdir(FOLDER)
    unittest.main(verbosity=2)
