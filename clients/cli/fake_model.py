"""A model API on loopback that knows one trick: to call a given tool, and then others.

It answers a conversation that offers the tool with a `tool_use` block, and the
conversation that comes back with the last `tool_result` by quoting it. So a real
client makes a real `tools/call` without an account or a model, and
`tool_results` holds, byte for byte, what that client passed on.

Only what Claude Code asks for is here: `POST /v1/messages`, plain and
streamed, and the counting of tokens. `requests` holds all that it asked.
"""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL_IDS = "toolu_sabir_"
CALL_ID = f"{CALL_IDS}1"
# What is called next, and with which arguments, after these results.
Next = Callable[[list[str]], tuple[str, dict]]


class FakeModel:
    """Serves from `with` to its end; `url` is where."""

    def __init__(self, tool: str, arguments: dict, then: Sequence[Next] = ()):
        self.tool = tool
        self.calls: list[Next] = [lambda _results: (tool, arguments), *then]
        self.offered: set[str] = set()
        self.tool_results: list[dict] = []
        self.requests: list[dict] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "FakeModel":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_failure) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: dict) -> tuple[dict, str]:
        """The content block to answer with, and why the model stops there."""
        self.requests.append(request)
        names = {tool.get("name") for tool in request.get("tools", [])}
        self.offered |= names
        results = [
            block
            for message in request.get("messages", [])
            if isinstance(message.get("content"), list)
            for block in message["content"]
            if block.get("type") == "tool_result" and block.get("tool_use_id", "").startswith(CALL_IDS)
        ]
        if results:
            self.tool_results = results
        if len(results) == len(self.calls):
            return {"type": "text", "text": f"The tool said: {text_of(results[-1])}"}, "end_turn"
        tool, arguments = self.calls[len(results)]([text_of(result) for result in results])
        if tool in names:
            call_id = f"{CALL_IDS}{len(results) + 1}"
            call = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
            return call, "tool_use"
        return {"type": "text", "text": f"No tool {tool} was offered."}, "end_turn"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """What answers the client's requests."""
        model = self

        class Messages(Handler):
            def do_POST(self) -> None:
                request = self.request_json()
                path = self.path.partition("?")[0]
                if path.endswith("/count_tokens"):
                    self.send("application/json", json.dumps({"input_tokens": 1}))
                elif path == "/v1/messages":
                    block, reason = model.answer(request)
                    name = request.get("model", "fake")
                    if request.get("stream"):
                        self.send("text/event-stream", _events(name, block, reason))
                    else:
                        self.send("application/json", json.dumps(_message(name, [block], reason)))
                else:
                    self.send("application/json", "{}", 404)

        return Messages


def text_of(tool_result: dict) -> str:
    """The text of a `tool_result`, whose content is a string or a list of blocks."""
    content = tool_result.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")


class Handler(BaseHTTPRequestHandler):
    """The rest of a server that answers POST requests."""

    protocol_version = "HTTP/1.1"

    def request_json(self) -> dict:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")

    def do_HEAD(self) -> None:
        self.send("application/json", "")

    def do_GET(self) -> None:
        self.send("application/json", "{}", 404)

    def send(self, kind: str, body: str, status: int = 200) -> None:
        payload = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_line) -> None:
        """The default writes each request to stderr, where only failures belong."""


def _message(model: str, content: list[dict], stop_reason: str | None) -> dict:
    return {
        "id": "msg_sabir",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _events(model: str, block: dict, reason: str) -> str:
    """The same message as a stream: an empty block, one delta that fills it, the end."""
    if block["type"] == "tool_use":
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {**block, "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    events = [
        {"type": "message_start", "message": _message(model, [], None)},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
