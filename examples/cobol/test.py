"""What this example promises, against the real binary and the real compiler.

`SABIR=… python3 examples/cobol/test.py`, after `examples/cobol/build`; `./test cobol` does both.
"""

import json
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
from client import Server  # noqa: E402


def text(result):
    assert [block["type"] for block in result["content"]] == ["text"], result
    return result["content"][0]["text"]


class Lifecycle(unittest.TestCase):
    """Initialization, routing and errors."""

    def setUp(self):
        self.server = Server(FOLDER)
        self.addCleanup(self.server.__exit__)

    def test_initialize_names_revision_server_and_the_tools_capability_alone(self):
        for asked in ["2025-11-25", "2024-11-05", "1999-01-01"]:
            server = Server(FOLDER)
            self.addCleanup(server.__exit__)
            answer = server.ask(
                "initialize",
                {
                    "protocolVersion": asked,
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            )
            self.assertEqual(answer["jsonrpc"], "2.0")
            self.assertEqual(answer["id"], server.last_id)
            result = answer["result"]
            self.assertEqual(result["protocolVersion"], "2025-11-25")
            self.assertEqual(result["serverInfo"]["name"], "cobol-mcp-server")
            self.assertIsInstance(result["serverInfo"]["version"], str)
            self.assertEqual(result["capabilities"], {"tools": {}})

    def test_the_initialized_notification_produces_no_output(self):
        self.server.notify("notifications/initialized")
        # The next answer is for the next request.
        self.server.send('{"jsonrpc":"2.0","id":"after","method":"ping"}')
        self.assertEqual(self.server.receive()["id"], "after")

    def test_ping_has_an_empty_result_and_its_id(self):
        for number in ["1", '"two"', "12345678901234567890"]:
            self.server.send('{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number)
            answer = {"jsonrpc": "2.0", "id": json.loads(number), "result": {}}
            self.assertEqual(self.server.receive(), answer)

    def test_an_unknown_method_is_32601_with_its_id(self):
        answer = self.server.ask("resources/subscribe/everything", {})
        self.assertEqual(answer["error"]["code"], -32601)
        self.assertEqual(answer["jsonrpc"], "2.0")
        for method in ["resources/list", "resources/templates/list", "prompts/list"]:
            self.assertEqual(self.server.ask(method, {})["error"]["code"], -32601, method)

    def test_what_cannot_be_parsed_is_32700(self):
        for malformed in ["{", "not json", '{"jsonrpc":"2.0",}', '{"jsonrpc":"2.0","id":1']:
            self.server.send(malformed)
            answer = self.server.receive()
            self.assertEqual(answer["jsonrpc"], "2.0")
            self.assertEqual(answer["error"]["code"], -32700, malformed)
            self.assertIsNone(answer.get("id"))

    def test_a_message_without_a_method_is_32700_with_its_id_if_it_has_one(self):
        self.server.send('{"jsonrpc":"2.0","id":7,"params":{}}')
        answer = self.server.receive()
        self.assertEqual((answer["error"]["code"], answer["id"]), (-32700, 7))
        self.server.send('{"jsonrpc":"2.0","params":{}}')
        answer = self.server.receive()
        self.assertEqual((answer["error"]["code"], answer.get("id")), (-32700, None))

    def test_requests_before_initialize_are_answered(self):
        self.assertEqual(self.server.ask("ping")["result"], {})
        self.assertEqual(len(self.server.ask("tools/list")["result"]["tools"]), 3)
        self.assertIn("5", text(self.server.call("add", a=2, b=3)))

    def test_the_loop_goes_on_after_anything_and_ends_with_the_input(self):
        self.server.send("{")
        self.server.receive()
        self.server.send("")
        self.server.send('{"jsonrpc":"2.0","method":"notifications/nonsense"}')
        self.server.initialize()
        self.server.ask("no/such/method")
        self.server.call("no_such_tool")
        self.server.call("validate_date", date="x")
        self.assertEqual(self.server.ask("ping")["result"], {})
        self.server.process.stdin.close()
        self.assertEqual(self.server.process.wait(timeout=10), 0)
        self.assertEqual(self.server.process.stdout.read(), b"")


class Tools(unittest.TestCase):
    """The three programs."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(FOLDER)
        cls.server.initialize()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def good(self, tool, expected, **arguments):
        result = self.server.call(tool, **arguments)
        self.assertFalse(result.get("isError", False), result)
        self.assertEqual(text(result), expected)

    def bad(self, tool, expected, **arguments):
        result = self.server.call(tool, **arguments)
        self.assertIs(result.get("isError"), True, result)
        self.assertIn(expected, text(result))

    def test_three_tools_are_listed_and_every_argument_is_required(self):
        tools = self.server.ask("tools/list")["result"]["tools"]
        schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
        types = {
            name: {arg: about["type"] for arg, about in schema["properties"].items()}
            for name, schema in schemas.items()
        }
        self.assertEqual(
            types,
            {
                "add": {"a": "number", "b": "number"},
                "format_currency": {"amount": "number"},
                "validate_date": {"date": "string"},
            },
        )
        for schema in schemas.values():
            self.assertEqual(schema["required"], list(schema["properties"]))
        self.assertIn("YYYYMMDD", schemas["validate_date"]["properties"]["date"]["description"])

    def test_add_says_the_sum_in_a_sentence(self):
        self.good("add", "The sum of 2 and 3 is 5.", a=2, b=3)
        self.good("add", "The sum of -1.5 and 2 is 0.5.", a=-1.5, b=2)
        self.good("add", "The sum of 0.1 and 0.2 is 0.3.", a=0.1, b=0.2)
        self.good("add", "The sum of -7 and 7 is 0.", a=-7, b=7)
        self.good("add", "The sum of 100 and 200 is 300.", a=100, b=200)

    def test_add_is_exact_up_to_its_bounds_and_refuses_what_is_beyond(self):
        most = 10**20 - 1
        self.good("add", f"The sum of {most} and 0 is {most}.", a=most, b=0)
        self.bad("add", "more than 20 digits", a=most, b=1)
        self.bad("add", "more than 20 digits before the point", a=10**20, b=0)
        self.raw("add", '{"a":1e3,"b":2E+0}', "The sum of 1e3 and 2E+0 is 1002.")
        self.raw("add", '{"a":1e-18,"b":0}', "The sum of 1e-18 and 0 is 0.000000000000000001.")
        self.bad("add", "more than 18 digits behind the point", a=1e-19, b=0)
        self.raw("add", '{"a":0.%s,"b":0}' % ("1" * 90), "at most 80 characters")

    def raw(self, tool, arguments, expected):
        self.server.send(
            '{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":'
            '{"name":"%s","arguments":%s}}' % (tool, arguments)
        )
        answer = self.server.receive()
        self.assertEqual(answer["id"], "raw")
        self.assertIn(expected, text(answer["result"]))

    def test_currency_goes_through_a_picture_clause(self):
        for amount, expected in [
            (1234567.89, "$1,234,567.89"),
            (0, "$0.00"),
            (0.5, "$0.50"),
            (999, "$999.00"),
            (1000, "$1,000.00"),
            (-1234.5, "-$1,234.50"),
            (-0.004, "$0.00"),
        ]:
            self.good("format_currency", expected, amount=amount)
        self.raw("format_currency", '{"amount":1234.565}', "$1,234.57")
        self.raw("format_currency", '{"amount":999999999999999.99}', "$999,999,999,999,999.99")
        self.raw("format_currency", '{"amount":1e6}', "$1,000,000.00")
        self.bad("format_currency", "the largest amount", amount=10**15)

    def test_valid_dates(self):
        for date in ["20240229", "20000229", "20231231", "19000228", "00010101", "99991231"]:
            self.good("validate_date", f"{date} is a valid date.", date=date)

    def test_what_is_wrong_with_a_date_is_named(self):
        for date, wrong in [
            ("20230229", "February 2023 has 28 days"),
            ("19000229", "February 1900 has 28 days"),
            ("20240230", "February 2024 has 29 days"),
            ("20240431", "April 2024 has 30 days"),
            ("20241301", "there is no month 13"),
            ("20240001", "there is no month 00"),
            ("20240100", "there is no day 00"),
            ("00000101", "there is no year 0000"),
            ("2024-02-29", "eight digits"),
            ("2024022", "eight digits"),
            ("202402291", "eight digits"),
            ("20240229 ", "eight digits"),
            (" 20240229", "eight digits"),
            ("20240229\n", "eight digits"),
            ("20240229>", "eight digits"),
            ("", "eight digits"),
            ("-2024022", "eight digits"),
            ("２０２４０２２９", "eight digits"),
        ]:
            self.bad("validate_date", wrong, date=date)

    def test_bad_arguments_are_results_that_say_so(self):
        self.bad("add", "\"b\"", a=1)
        self.bad("add", "a", a="1", b=2)
        self.bad("add", "c", a=1, b=2, c=3)
        self.bad("format_currency", "amount", amount=None)
        self.bad("validate_date", "date", date=20240229)
        self.bad("validate_date", "NUL", date="2024\x00229")
        self.bad("no_such_tool", "no_such_tool")

    def test_many_calls_at_once_are_all_answered(self):
        for number in range(64):
            self.server.send(
                '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
                '{"name":"add","arguments":{"a":%d,"b":1}}}' % (1000 + number, number)
            )
        answers = {}
        while len(answers) < 64:
            answer = self.server.receive()
            answers[answer["id"] - 1000] = text(answer["result"])
        for number, said in answers.items():
            self.assertEqual(said, f"The sum of {number} and 1 is {number + 1}.")


if __name__ == "__main__":
    unittest.main()
