"""The answer to each kind of request while Redis is away: the table of docs/cluster.md, row by row.

    away.py

Two real nodes. Redis is killed, and comes back with what it had acknowledged.
"""

import http.client
import json
import os
import signal
import time

from shared import Cluster, Failed, User, check, is_ready, park, wait_for

from run import listens  # isort: skip; `shared` has found its folder

RATE = 6

CONFIG = """
[server]
name = "away"
[seal]
key_env = "SABIR_SEAL_KEY"
[cluster]
url = "redis://127.0.0.1:${REDIS_PORT}"
[[command]]
name = "plain"
run = ["echo", "plain"]
[[command]]
name = "slow"
run = ["sh", "-c", "for i in 1 2 3 4 5 6; do echo $i/6; sleep 1; done; echo done"]
progress = '(\\d+)/(\\d+)'
[[command]]
name = "task"
run = ["sh", "-c", "sleep 0.5; echo done"]
task = "always"
[[command]]
name = "limited"
run = ["echo", "limited"]
[[limit]]
rate = "%d/h"
tools = ["limited"]
[[upstream]]
name = "legacy"
run = ["%s", "stdio", "2025-11-25"]
"""


class Session:
    """A client of an older revision, which chooses the node of each request."""

    def __init__(self, cluster):
        self.cluster, self.id = cluster, None

    def send(self, node, method, message=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.id:
            headers |= {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": "2025-11-25"}
        headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        port = self.cluster.node_ports[node]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"jsonrpc": "2.0", **message}) if message else None
        connection.request(method, "/mcp", body, headers)
        return connection.getresponse()

    def post(self, node, method, params, number=1):
        return self.send(node, "POST", {"id": number, "method": method, "params": params})

    def begin(self, node):
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        response = self.post(node, "initialize", hello, 0)
        response.read()
        if response.status == 200:
            self.id = response.headers["mcp-session-id"]
            self.send(node, "POST", {"method": "notifications/initialized"}).read()
        return response

    def call(self, node, tool, **more):
        return self.post(node, "tools/call", {"name": tool, "arguments": {}, **more})


def refused(response, what):
    """503 with `Retry-After`; never 404, which would end the session for its client."""
    body = response.read()
    check(response.status == 503, f"{what}: {response.status} {body[:200]} (expected 503)")
    check(response.headers["retry-after"], f"{what}: no Retry-After")


def events(response):
    """The events of a stream, as pairs of id and message."""
    event = {}
    for line in response:
        key, _, value = line.decode().rstrip("\n").partition(":")
        if line.strip():
            event[key] = value.strip()
            continue
        if event.get("data"):
            yield event.get("id"), json.loads(event["data"])
        event = {}


def allowed(user, node):
    answers = [user.call(node, "limited")["result"] for _ in range(2 * RATE)]
    return sum(not answer.get("isError") for answer in answers)


def while_away(cluster, user, known, task, parked, stream, heard):
    check("plain" in json.dumps(user.call(0, "plain")), "a call of the newest revision")
    print("  a call of the newest revision: served")
    heard += list(stream)
    check("result" in heard[-1][1] and "done" in json.dumps(heard[-1]), f"an open stream: {heard[-1:]}")
    check(all(number for number, _ in heard), f"events without ids: {heard}")
    print("  a stream that is open: goes on to its result")
    response = known.call(0, "plain")
    check(response.status == 200 and b"plain" in response.read(), f"a known session: {response.status}")
    print("  a session that the node knows: served")
    refused(known.post(0, "logging/setLevel", {"level": "error"}), "a change of a session")
    refused(known.call(1, "plain"), "a session that the node does not know")
    refused(Session(cluster).begin(0), "initialize")
    refused(known.send(0, "DELETE"), "DELETE")
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 99}}
    refused(known.send(0, "POST", cancel), "a cancellation for another node")
    print("  a session that it does not know, its changes, its end, initialize: 503 with Retry-After")
    answered = user.call(1, "legacy_elicit", **parked)
    check("anna" in json.dumps(answered.get("result")), f"an answer for another node: {answered}")
    print("  an answer to a call that waits on another node: brought there")
    count = [allowed(user, node) for node in range(2)]
    check(count == [RATE // 2] * 2, f"a limit of {RATE} allows {count} (expected half of it on each)")
    print(f"  limits: {count} of {RATE} on the two nodes")
    created = user.call(0, "task")
    check("taskId" not in created["result"] and "done" in json.dumps(created), f"a task: {created}")
    check("error" in user.get(1, task), "the state of another node's task is told")
    print("  tasks: not created, not denied")


def starts(cluster):
    """The process starts, and waits for the store."""
    cluster.end("node2")
    cluster.start_node(1)
    port = cluster.node_ports[1]
    wait_for("the node does not start", lambda: listens(port))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for path, wanted in (("/healthz", 200), ("/readyz", 503)):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        check(response.status == wanted, f"{path}: {response.status} {body} (expected {wanted})")
    print("  a node starts, and is not ready")


def main():
    cluster = Cluster(count=2)
    cluster.config = cluster.folder / "sabir.toml"
    cluster.config.write_text(CONFIG % (RATE, os.environ["FIXTURE"]))
    user, known = User(cluster, "nobody"), Session(cluster)
    try:
        cluster.start_redis()
        for number in range(2):
            cluster.start_node(number)
        for port in cluster.node_ports:
            wait_for("a node is not ready", lambda port=port: is_ready(port))
        # Nodes report every five seconds that they run.
        time.sleep(6)
        check(known.begin(0).status == 200, "initialize")
        task = user.task(0, "task")
        user.until(0, task, "completed")
        parked = park(user, 0, "anna")
        stream, heard = known.call(0, "slow", _meta={"progressToken": 1}), []
        check(stream.headers.get_content_type() == "text/event-stream", "a call with progress has no stream")
        going = events(stream)
        heard.append(next(going))
        cluster.end("redis", signal.SIGKILL)
        while_away(cluster, user, known, task, parked, going, heard)
        starts(cluster)
        cluster.start_redis()
        wait_for("the node is not ready with Redis", lambda: is_ready(cluster.node_ports[1]))
        response = known.call(1, "plain")
        check(response.status == 200, f"the session after Redis is back: {response.status} {response.read()}")
        response.read()
        # The events that could not be stored are, by now or soon.
        again = known.send(1, "GET", Last_Event_ID=heard[0][0])
        check(again.status == 200, f"the stream on another node: {again.status}")
        check(list(events(again)) == heard[1:], "another node tells something else of the stream")
        print("  Redis is back: the session and the events of its stream are on all nodes")
    except Failed as failed:
        for log in sorted(cluster.folder.glob("node*.log")):
            print(f"--- {log.name}", *log.read_text().splitlines()[-15:], sep="\n")
        raise SystemExit(f"error: {failed}") from failed
    finally:
        cluster.stop()


main()
