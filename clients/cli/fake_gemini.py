"""The fake model as Gemini CLI asks for it: `generateContent`, plain and streamed."""

import json
from http.server import BaseHTTPRequestHandler

import fake_model


class FakeGemini(fake_model.FakeModel):
    """Asks for the function whose name ends with the tool's, and quotes its response."""

    def reply(self, request: dict) -> dict:
        """The part to answer with."""
        functions = [
            function["name"]
            for tool in request.get("tools", [])
            for function in tool.get("functionDeclarations", [])
        ]
        self.offered |= set(functions)
        wanted = next((name for name in functions if name.endswith(f"_{self.tool}")), None)
        responses = [
            part["functionResponse"]["response"]
            for content in request.get("contents", [])
            for part in content.get("parts", [])
            if part.get("functionResponse", {}).get("name") == wanted
        ]
        if wanted is None:
            return {"text": f"No function {self.tool} was offered."}
        if not responses:
            _, arguments = self.calls[0]([])
            return {"functionCall": {"name": wanted, "args": arguments}}
        self.tool_results = responses
        return {"text": f"The tool said: {json.dumps(responses[-1])}"}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(fake_model.Handler):
            def do_POST(self) -> None:
                request = self.request_json()
                path = self.path.partition("?")[0]
                if path.endswith(":countTokens"):
                    self.send("application/json", json.dumps({"totalTokens": 1}))
                elif path.endswith(":streamGenerateContent"):
                    self.send("text/event-stream", f"data: {_response(model.reply(request))}\r\n\r\n")
                elif path.endswith(":generateContent"):
                    self.send("application/json", _response(model.reply(request)))
                else:
                    self.send("application/json", "{}", 404)

        return Handler


def _response(part: dict) -> str:
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"})
