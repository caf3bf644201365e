"""Further clients of chaos.py: calls that wait on one node for an answer, calls that are limited, and the
transport of the first revision."""

import http.client
import json
import time

from clients import LOSS, META, MODERN, Broken, Client, check_result


class Caller(Client):
    """Calls tools in the newest revision."""

    def call(self, tool, arguments, **more):
        """The answer, or `None` if a balancer or a node says to try again later."""
        capabilities = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        params = {"name": tool, "arguments": arguments, "_meta": {**META, **capabilities}, **more}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, body, _ = self.send("POST", body, headers)
        return json.loads(body) if status == 200 else None


class Parked(Caller):
    """Calls an upstream that asks while the call is alive there. The answer goes to the next node,
    which in two of three cases does not have the call."""

    rule = 6

    def step(self):
        began, name = time.monotonic(), f"{self.name}-{self.chaos.number()}"
        try:
            self.answer(began, name)
        except Broken as error:
            self.judge(began, str(error))
            raise
        time.sleep(0.1)

    def answer(self, began, name):
        arguments = {"word": name}
        asked = self.call("legacy_elicit", arguments)
        result = (asked or {}).get("result", {})
        if result.get("resultType") != "input_required":
            return self.judge(began, f"the call did not ask: {asked}")
        questions = result["inputRequests"]
        if name not in json.dumps(questions):
            self.chaos.violate(9, f"{self.name} was asked {questions}")
        content = {"action": "accept", "content": {"name": name}}
        answers = {"inputResponses": {key: content for key in questions}}
        answered = self.call("legacy_elicit", arguments, requestState=result["requestState"], **answers)
        if answered is None or "error" in answered:
            return self.judge(began, f"the answer was refused: {answered}")
        if name not in json.dumps(answered["result"]):
            return self.judge(began, f"the answer {name} did not reach its call: {answered}")
        # A call goes on once.
        again = self.call("legacy_elicit", arguments, requestState=result["requestState"], **answers)
        if again is not None and "result" in again and not again["result"].get("isError"):
            self.chaos.violate(6, f"a second answer was taken: {again}")
        self.chaos.count("parked")

    def judge(self, began, what):
        """A call is lost with its node only."""
        self.chaos.count("parked lost")
        if not self.chaos.is_disturbed(began, LOSS):
            self.chaos.violate(6, what)


class Limited(Caller):
    """Calls more often than it may."""

    def __init__(self, *args):
        super().__init__(*args)
        self.allowed = []

    def step(self):
        began = time.monotonic()
        answer = self.call("limited", {})
        if answer is not None and "result" in answer:
            is_limited = answer["result"].get("isError")
            self.chaos.count("limited" if is_limited else "allowed")
            self.allowed += [] if is_limited else [began]
        time.sleep(0.02)


class Old(Client):
    """The first revision: all answers come on one stream, messages are posted to any node."""

    def step(self):
        stream = self.open("GET", path="/sse")
        if stream.status != 200:
            return time.sleep(0.3)
        try:
            self.talk(stream)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Broken(str(error)) from error
        finally:
            stream.close()

    def talk(self, stream):
        data = (line[5:].strip().decode() for line in stream if line.startswith(b"data:"))
        path = next(data, None)
        if path is None:
            return
        info = {"name": self.name, "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info}
        self.say(path, {"id": 0, "method": "initialize", "params": params})
        next(data, None)
        self.say(path, {"method": "notifications/initialized"})
        while not self.chaos.is_over:
            number, began = self.chaos.number(), time.monotonic()
            params = {"name": "work", "arguments": {"number": number}}
            try:
                self.say(path, {"id": number, "method": "tools/call", "params": params})
                answer = next(line for line in data if f'"id":{number}' in line.replace(" ", ""))
            except (Broken, StopIteration, OSError, http.client.HTTPException) as error:
                self.chaos.record(number, "unknown")
                raise Broken(str(error)) from error
            if "not initialized" in answer:
                # The call went straight to the node of the stream and overtook `initialized`.
                self.chaos.record(number, "refused")
                time.sleep(0.2)
                continue
            check_result(self.chaos, json.loads(answer), number, began)
            self.chaos.count("old")
            time.sleep(0.1)

    def say(self, path, message):
        status, body, _ = self.send("POST", {"jsonrpc": "2.0", **message}, path=path)
        if status != 202:
            raise Broken(f"{status} {body[:100]}")
