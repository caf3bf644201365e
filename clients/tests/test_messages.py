"""How `conformance/messages` finds the definition that a message must fit."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "conformance/messages"))

import check  # noqa: E402
import walk  # noqa: E402


def defined(*methods_by_name: tuple[str, str]) -> dict:
    return {name: {"properties": {"method": {"const": method}}} for name, method in methods_by_name}


NAMES = {
    **defined(
        ("PingRequest", "ping"),
        ("ListToolsRequest", "tools/list"),
        ("CallToolRequest", "tools/call"),
        ("ClientNotification", "notifications/cancelled"),
    ),
    "ClientRequest": {"anyOf": [{"$ref": f"#/$defs/{n}Request"} for n in ("Ping", "ListTools", "CallTool")]},
    "ServerRequest": {"anyOf": [{"$ref": "#/$defs/PingRequest"}]},
    "ListToolsResult": {},
    "CallToolResultResponse": {},
    "JSONRPCErrorResponse": {},
    "JSONRPCResultResponse": {},
}


def record(direction: str, kind: str, **message) -> check.Record:
    return check.Record("x:1", "2025-11-25", direction, kind, {"jsonrpc": "2.0", **message})


class Definitions(unittest.TestCase):
    def names(self, found: check.Record) -> list[str]:
        return [name for name, _ in check.definitions_for(found, NAMES)]

    def test_a_request_fits_its_envelope_and_its_own_definition(self):
        found = record("client", "tools/list", id=1, method="tools/list")
        self.assertEqual(self.names(found), ["JSONRPCRequest", "ListToolsRequest"])

    def test_a_union_of_one_is_its_own_definition(self):
        found = record("client", "notifications/cancelled", method="notifications/cancelled")
        self.assertEqual(self.names(found), ["JSONRPCNotification", "ClientNotification"])

    def test_a_request_that_its_sender_may_not_send_is_wrong(self):
        with self.assertRaisesRegex(check.Wrong, "no tools/list from the server"):
            self.names(record("server", "tools/list", id=1, method="tools/list"))

    def test_a_result_fits_what_was_asked(self):
        found = record("server", "tools/list", id=1, result={"tools": []})
        self.assertEqual(self.names(found), ["JSONRPCResultResponse", "ListToolsResult"])
        found = record("server", "tools/call", id=1, result={})
        self.assertEqual(self.names(found), ["CallToolResultResponse"])

    def test_an_answer_without_content_must_be_empty(self):
        self.assertIn("EmptyResult", self.names(record("client", "ping", id=1, result={"_meta": {}})))
        with self.assertRaisesRegex(check.Wrong, "empty result"):
            self.names(record("client", "ping", id=1, result={"pong": True}))

    def test_a_null_id_is_json_rpc_for_not_known(self):
        error = {"code": -32700, "message": "not JSON"}
        found = check.definitions_for(record("server", "", id=None, error=error), NAMES)
        self.assertEqual([(name, value["id"]) for name, value in found], [("JSONRPCErrorResponse", 0)])

    def test_a_record_under_the_wrong_name_is_told(self):
        with self.assertRaisesRegex(check.Wrong, "recorded as ping"):
            self.names(record("client", "ping", id=1, method="tools/list"))


class Walking(unittest.TestCase):
    def test_the_sample_has_what_is_required_and_nothing_else(self):
        schema = {
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}},
            "required": ["a", "c"],
        }
        self.assertEqual(walk.sample(schema), {"a": 1, "c": "x"})


if __name__ == "__main__":
    unittest.main()
