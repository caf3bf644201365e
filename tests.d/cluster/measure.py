"""The cost of a session and of a call of an older client with Redis, and on one node without (docs/scale.md).

    SABIR=… measure.py [CALLS] [SESSIONS]

Calls to both nodes alternate, on one connection each, so that both see the same load of the machine.
"""

import http.client
import json
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "cluster"))
from run import HERE, Cluster, is_ready, wait_for  # noqa: E402

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.session = None

    def post(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        began = time.perf_counter()
        self.connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status not in (200, 202):
            raise SystemExit(f"error: {response.status} {body}")
        return response.headers.get("mcp-session-id"), time.perf_counter() - began

    def begin(self):
        self.session = None
        self.session, _ = self.post({"id": 0, "method": "initialize", "params": HELLO})
        self.post({"method": "notifications/initialized"})

    def call(self):
        return self.post({"id": 1, "method": "tools/list"})[1]


def info(cluster, section):
    command = ["redis-cli", "-p", str(cluster.redis_port), "INFO", section]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commands(cluster):
    """How often each command was asked for by clients."""
    return {name: int(count) for name, count in re.findall(r"cmdstat_(\S+?):calls=(\d+)", info(cluster, "commandstats"))}


def memory(cluster):
    return int(re.search(r"used_memory:(\d+)", info(cluster, "memory"))[1])


def resident(process):
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def show(name, times):
    times = sorted(times)
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"{name}: p50 {p50 * 1000:.2f} ms, p99 {p99 * 1000:.2f} ms")


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    sessions = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    cluster = Cluster(count=2)
    plain = cluster.folder / "plain.toml"
    text = (HERE / "sabir.toml").read_text()
    plain.write_text(re.sub(r"\[cluster\]\nurl = .*\n", "", text))
    try:
        cluster.start_redis()
        cluster.start_node(0)
        cluster.config = plain
        cluster.start_node(1)
        for port in cluster.node_ports:
            wait_for("a node is not ready", lambda port=port: is_ready(port))
        shared, alone = (Client(port) for port in cluster.node_ports)
        for client in (shared, alone):
            client.begin()
            for _ in range(calls // 10):
                client.call()
        before = commands(cluster)
        times = [(shared.call(), alone.call()) for _ in range(calls)]
        after = commands(cluster)
        show("a call with Redis", [time for time, _ in times])
        show("the same without", [time for _, time in times])
        asked = {name: count - before.get(name, 0) for name, count in after.items()}
        asked = {name: count for name, count in asked.items() if count >= calls / 100}
        print(f"commands for {calls} calls: {asked}")
        before, process = memory(cluster), cluster.processes["node1"]
        began = resident(process)
        for _ in range(sessions):
            shared.begin()
        print(f"a session: {(memory(cluster) - before) / sessions:.0f} bytes in Redis", end=", ")
        print(f"{(resident(process) - began) / sessions:.0f} bytes in its node")
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
