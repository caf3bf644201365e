"""Every acceptance criterion of the seeds 002 and 003, against a real Neovim with a real client.

The criteria that name the Claude CLI are in test_claude.py."""

import unittest

from editor import Editor, wait_for


class Handshake:
    """Seed 002. The subclasses say which tools are registered."""

    options = ""

    @classmethod
    def setUpClass(cls):
        cls.editor = Editor(cls.options).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.editor.__exit__()

    def setUp(self):
        wait_for(lambda: self.editor.state() == "waiting", "the last client is gone")
        self.client = self.editor.connect()
        self.addCleanup(self.client.socket.close)

    def test_a_correct_response_is_returned_upon_initialize(self):
        answer = self.client.shake_hands()
        self.assertEqual(set(answer), {"jsonrpc", "id", "result"})
        result = answer["result"]
        self.assertEqual(set(result), {"protocolVersion", "capabilities", "serverInfo"})

    def test_the_protocol_version_is_2025_03_26(self):
        self.assertEqual(self.client.shake_hands()["result"]["protocolVersion"], "2025-03-26")

    def test_the_capabilities_include_tools(self):
        capabilities = self.client.shake_hands()["result"]["capabilities"]
        self.assertEqual(capabilities, {"tools": {"listChanged": True}})

    def test_the_server_is_named_claude_code_neovim_mcp(self):
        server = self.client.shake_hands()["result"]["serverInfo"]
        self.assertEqual(server["name"], "Claude Code Neovim MCP")

    def test_the_version_of_the_server_is_0_1_0(self):
        self.assertEqual(self.client.shake_hands()["result"]["serverInfo"]["version"], "0.1.0")

    def test_the_state_goes_from_waiting_to_initializing_to_ready(self):
        editor, client = self.editor, self.client
        is_connected = "require('sabir').is_connected()"
        editor.run("_G.events = {}")
        self.assertEqual((editor.state(), editor.lua(is_connected)), ("waiting", False))
        hello = {"protocolVersion": "2025-03-26", "capabilities": {}}
        hello["clientInfo"] = {"name": "claude-code", "version": "1.0.0"}
        client.request("initialize", hello)
        wait_for(lambda: editor.state() == "initializing", "the state is initializing")
        self.assertFalse(editor.lua(is_connected))
        self.assertNotIn("ClaudeCodeClientConnected", editor.events())
        client.notify("notifications/initialized")
        wait_for(lambda: editor.state() == "ready", "the state is ready")
        self.assertTrue(editor.lua(is_connected))
        wait_for(lambda: "ClaudeCodeClientConnected" in editor.events(), "the event has fired")
        [(_, data), *_] = editor.lua("_G.events")
        self.assertEqual(data["client"], {"name": "claude-code", "version": "1.0.0"})
        client.socket.close()
        wait_for(lambda: editor.state() == "waiting", "the client is gone")
        self.assertFalse(editor.lua(is_connected))
        self.assertIn("ClaudeCodeClientDisconnected", editor.events())


class HandshakeWithTools(Handshake, unittest.TestCase):
    pass


class HandshakeWithAnEmptyRegistry(Handshake, unittest.TestCase):
    options = "tools = false"


class Registry(unittest.TestCase):
    """Seed 003."""

    def setUp(self):
        self.editor = self.enterContext(Editor("tools = false"))
        self.client = self.enterContext(self.editor.connect())
        self.client.shake_hands()

    def test_tools_list_returns_an_empty_array(self):
        self.assertEqual(self.client.request("tools/list")["result"], {"tools": []})

    def test_a_call_of_an_unregistered_tool_returns_an_error(self):
        answer = self.client.call("toolName")
        error = {"code": -32601, "message": "Tool not found: toolName"}
        self.assertEqual(answer["error"], error)

    def test_register_tool_exists(self):
        self.assertEqual(self.editor.lua("type(require('sabir').register_tool)"), "function")

    def test_registered_tools_are_reflected_in_tools_list(self):
        self.editor.run(
            "require('sabir').register_tool('greet', { description = 'Greets',"
            " inputSchema = { type = 'object', properties = { who = { type = 'string' } } } },"
            " function(a) if a.who == 'nobody' then error('there is nobody') end"
            " return 'Hello, ' .. a.who end)"
        )
        self.client.notification("notifications/tools/list_changed")
        [tool] = self.client.request("tools/list")["result"]["tools"]
        self.assertEqual((tool["name"], tool["description"]), ("greet", "Greets"))
        self.assertEqual(tool["inputSchema"]["properties"], {"who": {"type": "string"}})
        answer = self.client.call("greet", who="you")
        self.assertEqual(answer["result"], {"content": [{"type": "text", "text": "Hello, you"}]})
        failed = self.client.call("greet", who="nobody")["result"]
        self.assertTrue(failed["isError"])
        self.assertEqual(failed["content"], [{"type": "text", "text": "there is nobody"}])
        self.editor.run("require('sabir').unregister_tool('greet')")
        self.client.notification("notifications/tools/list_changed")
        self.assertEqual(self.client.request("tools/list")["result"], {"tools": []})

    def test_a_result_that_is_not_json_fails_its_call_only(self):
        self.editor.run(
            "require('sabir').register_tool('odd', { description = 'Odd', type = 'object' },"
            " function() return { content = print } end)"
        )
        self.client.notification("notifications/tools/list_changed")
        for _ in range(2):
            failed = self.client.call("odd")["result"]
            self.assertTrue(failed["isError"])
            self.assertIn("cannot be written as JSON", failed["content"][0]["text"])
        self.editor.run("require('sabir').unregister_tool('odd')")
        self.client.notification("notifications/tools/list_changed")


if __name__ == "__main__":
    unittest.main()
