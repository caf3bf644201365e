"""What nodes share beside sessions: tasks, limits, list changes and calls that are alive on one node, on three
real nodes and a real Redis.

    shared.py

Each check uses the nodes themselves, not the balancer: what begins on one is looked at on another.
"""

import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))
from run import Cluster, is_ready, wait_for  # noqa: E402

TASKS = "io.modelcontextprotocol/tasks"
QUOTA, RATE = 20, 5

CONFIG = """
[server]
name = "shared"
[seal]
key_env = "SABIR_SEAL_KEY"
[cluster]
url = "redis://127.0.0.1:${REDIS_PORT}"
[[limit]]
quota = %d
per = ["caller"]
tools = ["counted"]
[[command]]
name = "brief"
run = ["sh", "-c", "sleep 0.5; echo done"]
task = "always"
[[command]]
name = "endless"
run = ["sleep", "1000"]
task = "always"
timeout = "5m"
[[command]]
name = "counted"
run = ["echo", "counted"]
[[limit]]
rate = "%d/h"
tools = ["paced"]
[[command]]
name = "paced"
run = ["echo", "paced"]
[[upstream]]
name = "legacy"
run = ["%s", "stdio", "2025-11-25"]
"""

MORE = """
[[command]]
name = "more"
run = ["echo", "more"]
"""


class Failed(Exception):
    pass


def check(is_right, what):
    if not is_right:
        raise Failed(what)


class User:
    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name

    def open(self, node, method, params, name=None):
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
            "io.modelcontextprotocol/clientInfo": {"name": "shared", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Authorization": f"Bearer secret-of-{self.name}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
        }
        if name:
            headers["Mcp-Name"] = name
        port = self.cluster.node_ports[node]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/mcp", json.dumps(message), headers)
        return connection.getresponse()

    def ask(self, node, method, params, name=None):
        response = self.open(node, method, params, name)
        body = response.read()
        check(response.status == 200, f"{method} on node {node + 1}: {response.status} {body[:300]}")
        return json.loads(body)

    def call(self, node, tool, **more):
        return self.ask(node, "tools/call", {"name": tool, "arguments": {}, **more}, tool)

    def task(self, node, tool):
        created = self.call(node, tool)
        check("taskId" in created.get("result", {}), f"no task: {created}")
        return created["result"]["taskId"]

    def get(self, node, task):
        return self.ask(node, "tasks/get", {"taskId": task}, task)

    def until(self, node, task, status, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            got = self.get(node, task)
            if got.get("result", {}).get("status") == status:
                return got["result"]
            check(time.monotonic() < deadline, f"not {status}: {got}")
            time.sleep(0.1)


def check_tasks(ann, bob):
    task = ann.task(0, "brief")
    result = ann.until(1, task, "completed")
    check("done" in json.dumps(result["result"]), f"the result is {result}")
    check(ann.get(2, task)["result"] == result, "another node says something else")
    check("error" in bob.get(1, task), "another caller sees the task")
    stopped = ann.task(0, "endless")
    check("result" in ann.ask(1, "tasks/cancel", {"taskId": stopped}, stopped), "not cancelled")
    for node in range(2):
        ann.until(node, stopped, "cancelled")
    print("  tasks: polled, fetched and cancelled on other nodes")


def park(user, node, word):
    """Makes a call that is alive at its upstream while the client is asked. Returns its answer request."""
    asked = user.call(node, "legacy_elicit", arguments={"word": word})["result"]
    check(asked.get("resultType") == "input_required", f"the call did not ask: {asked}")
    answer = {"action": "accept", "content": {"name": word}}
    answers = {key: answer for key in asked["inputRequests"]}
    return {"arguments": {"word": word}, "requestState": asked["requestState"], "inputResponses": answers}


def check_parked(ann, bob):
    answer = park(ann, 0, "anna")
    stolen = bob.call(1, "legacy_elicit", **answer)
    check("error" in stolen, f"another caller answers: {stolen}")
    answered = ann.call(1, "legacy_elicit", **answer)
    check("anna" in json.dumps(answered.get("result")), f"the call did not go on: {answered}")
    again = ann.call(2, "legacy_elicit", **answer)
    check(again.get("error", {}).get("code") == -32602, f"the call went on twice: {again}")
    print("  calls that wait for an answer: it reaches them from another node")


def check_gone(ann, answer):
    """The node of the call was killed."""
    refused = ann.call(0, "legacy_elicit", **answer).get("error", {})
    is_clear = refused.get("code") == -32602 and "is gone" in refused.get("message", "")
    check(is_clear, f"the answer for a node that is gone: {refused}")
    print("  calls that wait for an answer: refused when their node is gone")


def check_limits(ann, bob):
    def count(user):
        answers = [user.call(nth % 2, "counted") for nth in range(QUOTA + 10)]
        return sum(not answer["result"].get("isError") for answer in answers)

    counts, day = {}, time.time() // 86400
    threads = [
        threading.Thread(target=lambda user=user: counts.update({user.name: count(user)}))
        for user in (ann, bob)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # At midnight (UTC) a quota begins anew.
    is_same_day = time.time() // 86400 == day
    check(not is_same_day or counts == {"ann": QUOTA, "bob": QUOTA}, f"a quota of {QUOTA} allowed {counts}")
    paced = [user.call(node, "paced") for node in range(2) for user in (ann, bob) for _ in range(3)]
    paced = sum(not answer["result"].get("isError") for answer in paced)
    check(paced == RATE, f"a rate with a burst of {RATE} allowed {paced}")
    print(f"  limits: a quota of {QUOTA} allows {QUOTA} calls on two nodes together")


def check_changes(ann, cluster, own):
    """The file of the second node changes; a listener of the first hears of it."""
    wish = {"notifications": {"toolsListChanged": True}}
    response = ann.open(0, "subscriptions/listen", wish)
    heard = []
    for line in response:
        if not line.startswith(b"data:") or not line[5:].strip():
            continue
        heard.append(json.loads(line[5:])["method"])
        if heard == ["notifications/subscriptions/acknowledged"]:
            own.write_text(cluster.config.read_text() + MORE)
        if heard[-1] == "notifications/tools/list_changed":
            break
    check(heard[-1] == "notifications/tools/list_changed", f"the listener heard {heard}")
    response.close()
    print("  list_changed: told to a listener on another node")


def main():
    cluster = Cluster()
    text = CONFIG % (QUOTA, RATE, os.environ["FIXTURE"])
    for name in ("ann", "bob"):
        digest = base64.b64encode(hashlib.sha256(f"secret-of-{name}".encode()).digest()).decode()
        text += f'[[token]]\nname = "{name}"\nhash = "sha256:{digest}"\n'
    cluster.config = cluster.folder / "sabir.toml"
    cluster.config.write_text(text)
    own = cluster.folder / "second.toml"
    shutil.copy(cluster.config, own)
    ann, bob = User(cluster, "ann"), User(cluster, "bob")
    try:
        cluster.start_redis()
        for number in range(3):
            whole, cluster.config = cluster.config, own if number == 1 else cluster.config
            cluster.start_node(number)
            cluster.config = whole
        for port in cluster.node_ports:
            wait_for("a node is not ready", lambda port=port: is_ready(port))
        lost = ann.task(2, "endless")
        check(ann.get(0, lost)["result"]["status"] == "working", "a task of another node is unknown")
        check_tasks(ann, bob)
        check_parked(ann, bob)
        waiting = park(ann, 2, "otto")
        cluster.end("node3", signal.SIGKILL)
        check_gone(ann, waiting)
        check_limits(ann, bob)
        check_changes(ann, cluster, own)
        failed = ann.until(0, lost, "failed")
        check("interrupted" in json.dumps(failed), f"the reason is {failed}")
        check(ann.get(1, lost)["result"] == failed, "another node says something else")
        print("  tasks: those of a node that was killed have failed")
    except Failed as failed:
        for log in sorted(cluster.folder.glob("node*.log")):
            print(f"--- {log.name}", *log.read_text().splitlines()[-15:], sep="\n")
        raise SystemExit(f"error: {failed}") from failed
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
