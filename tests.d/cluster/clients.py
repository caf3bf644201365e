"""The clients of chaos.py. Each is one user, does one thing after the other, and reports broken rules."""

import http.client
import json
import random
import threading
import time

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
PATIENCE = 60  # s; nothing takes so long, even with faults
KEPT = 40  # s; less than `replay_time`

# Faults that keep a node from the store, and those that a request to any node may notice.
STORE = ("store", "cut", "stall", "together")
LOSS = ("kill", "drain", "freeze", "clock", "reload", "together")


class Broken(Exception):
    """The connection broke, or no answer came in time: the fate of the request is unknown."""


class Client:
    """One user."""

    # The rule that is broken if one of its steps never ends.
    rule = 12

    def __init__(self, chaos, cluster, name):
        self.chaos, self.cluster, self.name = chaos, cluster, name
        self.random = random.Random(f"{name} {chaos.random.random()}")
        self.token = f"secret-of-{name}"

    def open(self, method, body=None, headers=None, port=None, path="/mcp"):
        """Sends a request on a connection of its own; the response is not read yet."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.cluster.port, timeout=PATIENCE)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream" if method == "POST" else "text/event-stream",
            **(headers or {}),
        }
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            self.socket = connection.sock
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Broken(str(error)) from error

    def send(self, *args, **kwargs):
        """The status and the whole body."""
        response = self.open(*args, **kwargs)
        try:
            return response.status, response.read(), response.headers
        except (OSError, http.client.HTTPException) as error:
            raise Broken(str(error)) from error

    def run(self):
        while not self.chaos.is_over:
            try:
                self.step()
            except Broken:
                self.chaos.count("broken")
                time.sleep(0.2)


META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "chaos", "version": "1"},
}


class Modern(Client):
    def step(self):
        number, began = self.chaos.number(), time.monotonic()
        params = {"name": "work", "arguments": {"number": number}, "_meta": META}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "work"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        try:
            status, body, _ = self.send("POST", body, headers)
        except Broken as error:
            self.chaos.record(number, "unknown")
            self.judge(began, str(error))
            raise
        if status == 200:
            check_result(self.chaos, json.loads(body), number, began)
        else:
            self.chaos.record(number, "refused" if status == 503 else "unknown")
            self.judge(began, f"{status} {body[:200]}")
        time.sleep(0.05)

    def judge(self, began, what):
        """Only the loss of a node may be noticed."""
        if not self.chaos.is_disturbed(began, LOSS):
            self.chaos.violate(12, f"a modern call failed without the loss of a node: {what}")


# The rules that each step of a client of the older revisions tries.
RULES = {"work": 4, "ask": 6, "stream": 3, "again": 3, "cancel": 7, "intrude": 9, "end": 5}


class Legacy(Client):
    rule = 4
    session = None
    last_id = 0
    # A DELETE was sent, and its result is unknown.
    may_have_ended = False
    # The last stream whose result was heard: its session, first event, number and time.
    finished = None

    def headers(self, **more):
        return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.revision, **more}

    def post(self, message, **kwargs):
        return self.send("POST", {"jsonrpc": "2.0", **message}, self.headers(), **kwargs)

    def begin(self):
        self.revision = self.random.choice(REVISIONS)
        params = {
            "protocolVersion": self.revision,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": self.name, "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        status, _, headers = self.send("POST", hello)
        if status != 200:
            return self.wait(status, "initialize")
        self.session, self.may_have_ended = headers["mcp-session-id"], False
        ready = {"method": "notifications/initialized"}
        # The notification may be lost with its node; it can be repeated.
        while not self.chaos.is_over:
            try:
                status, _, _ = self.post(ready)
            except Broken:
                continue
            if status == 202:
                return self.chaos.count("sessions")
            self.wait(status, "initialized")

    def wait(self, status, what):
        if status == 404:
            if not self.may_have_ended:
                self.chaos.violate(4, f"404 for {what} of a session that was not ended")
            self.session = None
        elif status not in (502, 503, 504):
            self.chaos.violate(4, f"{status} for {what}")
        time.sleep(0.3)

    def step(self):
        if self.session is None:
            return self.begin()
        self.last_id += 1
        steps = [self.work] * 6 + [self.ask, self.stream] * 2 + [self.cancel, self.intrude, self.again]
        step = self.random.choice(steps)
        self.rule = RULES[step.__name__]
        step()
        if self.random.random() < 0.03:
            self.rule = RULES["end"]
            self.end()

    def work(self):
        number, began = self.chaos.number(), time.monotonic()
        params = {"name": "work", "arguments": {"number": number}}
        try:
            status, body, _ = self.post({"id": self.last_id, "method": "tools/call", "params": params})
        except Broken:
            self.chaos.record(number, "unknown")
            raise
        if status != 200:
            self.chaos.record(number, "refused" if status in (404, 503) else "unknown")
            return self.wait(status, "a call")
        messages = messages_of(body)
        if not messages:
            return self.chaos.record(number, "unknown")
        check_result(self.chaos, messages[-1], number, began)

    def ask(self):
        """A call that asks; the answer goes to the next node."""
        if self.revision < "2025-06-18":
            return
        began, name = time.monotonic(), f"{self.name}-{self.chaos.number()}"
        params = {"name": "up_elicit", "arguments": {"word": name}}
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params}
        response = self.open("POST", message, self.headers())
        if response.status != 200:
            return self.wait(response.status, "a call that asks")
        is_answered = False
        try:
            for event in events(response):
                if event.get("method") == "elicitation/create":
                    if name not in event["params"]["message"]:
                        self.chaos.violate(9, f"{self.name} was asked {event['params']['message']!r}")
                    content = {"action": "accept", "content": {"name": name}}
                    status, _, _ = self.post({"id": event["id"], "result": content})
                    if status != 202:
                        return self.wait(status, "an answer")
                    is_answered, question = True, event["id"]
                elif event.get("id") == self.last_id:
                    text = json.dumps(event)
                    if "result" in event and name not in text:
                        self.chaos.violate(6, f"the answer {name} did not reach its call: {text[:300]}")
                    # A late answer does nothing.
                    if is_answered:
                        self.post({"id": question, "result": {"action": "decline"}})
                    return self.chaos.count("asked" if "result" in event else "ask failed")
        except (OSError, http.client.HTTPException) as error:
            if is_answered and not self.chaos.is_disturbed(began):
                self.chaos.violate(6, f"an answered call never ended: {error}")
            raise Broken(str(error)) from error
        if not self.chaos.is_disturbed(began):
            self.chaos.violate(6, "a call that asks was not answered")

    def stream(self):
        """A call whose stream is cut, and resumed on the next node."""
        number, began, heard = self.chaos.number(), time.monotonic(), []
        params = {"name": "count", "arguments": {"number": number}, "_meta": {"progressToken": number}}
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params}
        response = self.open("POST", message, self.headers())
        if response.status != 200:
            return self.wait(response.status, "a call with progress")
        if response.headers.get_content_type() == "application/json":
            return check_counted(self.chaos, messages_of(response.read())[-1], number, began)
        self.follow(response, heard, self.random.randrange(1, 5))
        while heard and not is_result(heard) and not self.chaos.is_over:
            try:
                response = self.open("GET", None, self.headers(**{"Last-Event-ID": heard[-1][0]}))
            except Broken:
                continue
            if response.status == 400:
                # The node is gone, and there was no result.
                if not self.chaos.is_disturbed(began):
                    self.chaos.violate(2, f"a stream of {len(heard)} events was not resumed")
                return self.chaos.count("streams lost")
            if response.status != 200:
                self.wait(response.status, "a lost stream")
                if self.session is None:
                    return
                continue
            self.follow(response, heard, self.random.choice([1, 2, None]))
            self.chaos.count("resumed")
        if not is_result(heard):
            return
        self.check_stream(heard, number, began)
        self.finished = (self.session, heard, number, time.monotonic())

    def follow(self, response, heard, most):
        """Reads events, until the end or until so many were read."""
        event, count = {}, 0
        try:
            for line in response:
                key, _, value = line.decode().rstrip("\n").partition(":")
                if line.strip():
                    event[key] = value.strip()
                    continue
                if event.get("id"):
                    heard.append((event["id"], event.get("data")))
                    count += 1
                event = {}
                if count == most and not is_result(heard):
                    break
        except (OSError, http.client.HTTPException):
            pass
        response.close()

    def check_stream(self, heard, number, began):
        """No gap, nothing twice, nothing of others."""
        places = [identifier.rsplit("-", 1) for identifier, _ in heard]
        if len({stream for stream, _ in places}) > 1:
            self.chaos.violate(2, f"events of several streams: {heard}")
        order = [int(place) for _, place in places]
        if order != list(range(order[0], order[0] + len(order))):
            self.chaos.violate(2, f"a stream has the events {order}")
        for _, data in heard[:-1]:
            token = data and json.loads(data).get("params", {}).get("progressToken")
            if data and token != number:
                self.chaos.violate(9, f"the stream of call {number} has {data}")
        check_counted(self.chaos, json.loads(heard[-1][1]), number, began)

    def again(self):
        """A result that was received can be replayed by any node."""
        session, heard, number, when = self.finished or (None, [], 0, 0)
        if session != self.session or time.monotonic() > when + KEPT or len(heard) < 2:
            return
        response = self.open("GET", None, self.headers(**{"Last-Event-ID": heard[0][0]}))
        if response.status == 200:
            repeated = heard[:1]
            self.follow(response, repeated, None)
            if repeated == heard:
                return self.chaos.count("heard again")
            if is_result(repeated):
                return self.chaos.violate(2, f"{heard} was heard again as {repeated}")
        elif response.status != 400:
            return self.wait(response.status, "a stream that has ended")
        if not self.chaos.is_disturbed(when - 10, STORE) and not self.is_cut(response):
            self.chaos.violate(3, f"the result of call {number} is gone: {response.status}")

    def is_cut(self, response):
        """Whether the node may have gone while it repeated a stream."""
        return response.status == 200 and self.chaos.is_disturbed(time.monotonic() - 10)

    def cancel(self):
        """A call is cancelled by a request to the next node."""
        began = time.monotonic()
        params = {"name": "linger", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params}
        headers, ended = self.headers(), threading.Event()

        def linger():
            try:
                self.send("POST", message, headers)
            except Broken:
                pass
            ended.set()

        thread = threading.Thread(target=linger, daemon=True)
        thread.start()
        time.sleep(0.3)
        cancel = {"method": "notifications/cancelled", "params": {"requestId": self.last_id}}
        is_cancelled, port = False, self.random.choice(self.cluster.node_ports)
        # The cancel may overtake the call, and its node may be away: it is repeated. It goes to one node,
        # which does not have the call in two of three cases.
        while not ended.wait(1) and time.monotonic() - began < PATIENCE / 4:
            try:
                is_cancelled |= self.post(cancel, port=port)[0] == 202
            except Broken:
                port = self.cluster.port
        if not ended.is_set() and is_cancelled and not self.chaos.is_disturbed(began):
            self.chaos.violate(7, "a cancelled call goes on")
        self.chaos.count("cancelled" if ended.is_set() else "not cancelled")

    def intrude(self):
        """Another user's session does not exist."""
        other = self.random.choice(self.others)
        session, began = other.session, time.monotonic()
        if other is self or session is None:
            return
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        status, _, _ = self.send("POST", message, headers)
        if status not in (404, 502, 503, 504):
            self.chaos.violate(9, f"{self.name} got {status} in the session of {other.name}")
        self.chaos.count("intrusions")

    def end(self):
        headers = self.headers()
        is_repeated, self.may_have_ended = self.may_have_ended, True
        status, _, _ = self.send("DELETE", None, headers)
        if status == 404:
            self.may_have_ended = is_repeated
        if status != 204:
            return self.wait(status, "DELETE")
        ended, self.session = self.session, None
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers["Mcp-Session-Id"] = ended
        for port in self.cluster.node_ports:
            began, status = time.monotonic(), 200
            # A node that does not reach the store may serve it until it hears of the end.
            while status == 200 and time.monotonic() < began + 15:
                try:
                    status, _, _ = self.send("POST", message, headers, port=port)
                except Broken:
                    status = 503
            if status == 200 and not self.chaos.is_disturbed(began, STORE):
                self.chaos.violate(5, "a node serves a session that was ended")
            if time.monotonic() > began + 1:
                self.chaos.count("ended late")
        self.chaos.count("ended")


class Listener(Legacy):
    """Waits for changes of the tools."""

    def __init__(self, *args):
        super().__init__(*args)
        self.heard = []

    def step(self):
        if self.session is None:
            return self.begin()
        response = self.open("GET", None, self.headers())
        if response.status != 200:
            return self.wait(response.status, "a stream")
        self.listen(response)

    def listen(self, response):
        try:
            for event in events(response):
                if event.get("method") == "notifications/tools/list_changed":
                    self.heard.append(time.monotonic())
                    self.chaos.count("changes heard")
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Broken(str(error)) from error

    def stop(self):
        """Ends the stream."""
        try:
            self.socket.shutdown(2)
        except OSError:
            pass


class ModernListener(Listener):
    def step(self):
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        response = self.open("POST", message, headers)
        if response.status != 200:
            return time.sleep(0.3)
        # Its client looks at the list when it has opened a stream.
        self.heard.append(time.monotonic())
        self.listen(response)


def messages_of(body):
    """The messages of a response: one JSON text, or events."""
    text = body.decode()
    if text.startswith("{"):
        return [json.loads(text)]
    lines = (line[5:].strip() for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if line]


def events(response):
    """The messages of a response as they come."""
    if response.headers.get_content_type() == "application/json":
        yield from messages_of(response.read())
        return
    for line in response:
        text = line[5:].strip() if line.startswith(b"data:") else b""
        if text:
            yield json.loads(text)


def is_result(heard):
    """Whether the last event ends its stream."""
    message = json.loads(heard[-1][1] or "{}") if heard else {}
    return "result" in message or "error" in message


def check_counted(chaos, message, number, began):
    text = json.dumps(message)
    if f"counted {number}" in text:
        return chaos.count("streams")
    if not chaos.is_disturbed(began, LOSS):
        chaos.violate(9, f"the answer to call {number} is {text[:300]}")


def check_result(chaos, message, number, began):
    """A result carries the number of its call. A node that stops may give up a call that takes long."""
    result = message.get("result") or {}
    text = result.get("content", [{}])[0].get("text", "")
    if text.strip() == f"did {number}":
        return chaos.record(number, "answered")
    whole = json.dumps(message)[:300]
    is_given_up = "stopping" in whole or result.get("isError")
    if not (is_given_up and chaos.is_disturbed(began, LOSS)):
        chaos.violate(9, f"the answer to call {number} is {whole}")
    chaos.record(number, "unknown")
