"""Starts three nodes of Sabir, a Redis server, and HAProxy in front of the nodes, without affinity.

    ./run.py            prints the address of the endpoint, and runs until it is interrupted
    ./run.py FILE       serves another file, whose [seal] and [cluster] are those of sabir.toml

It needs `redis-server` and `haproxy` (Debian: apt-get install redis-server haproxy), and `sabir` in the
PATH or in the variable SABIR. Everything listens on 127.0.0.1 only, and ends with this program.
"""

import base64
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent

HAPROXY = """
global
    maxconn 2000
defaults
    mode http
    timeout connect 1s
    timeout client 1h
    timeout server 1h
    timeout check 10s
    option redispatch
    retries 3
frontend endpoint
    bind 127.0.0.1:{port}
    default_backend nodes
backend nodes
    balance roundrobin
    option httpchk GET /readyz
    default-server check inter 500ms fall 2 rise 1
{servers}
"""


def free_ports(count):
    """Ports that no outgoing connection uses, so that a node can have its port again after a restart."""
    free = []
    while len(free) < count:
        port = random.randrange(20000, 30000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in free:
            free.append(port)
    return free


def wait_for(what, check, seconds=60):
    """Waits until a condition holds."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise SystemExit(f"error: {what} (waited {seconds} s)")
        time.sleep(0.1)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


class Cluster:
    """Nodes, a store and a balancer, each a process of its own."""

    def __init__(self, config=HERE / "sabir.toml", count=3):
        self.folder = Path(tempfile.mkdtemp(prefix="sabir-cluster-"))
        self.config = config
        self.sabir = os.environ.get("SABIR") or shutil.which("sabir")
        for program in ("redis-server", "haproxy"):
            if not shutil.which(program):
                raise SystemExit(f"error: {program} not found (apt-get install redis-server haproxy)")
        if not self.sabir:
            raise SystemExit("error: sabir not found (put it into the PATH)")
        self.redis_port, self.port, *self.node_ports = free_ports(2 + count)
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        self.env = {**os.environ, "SABIR_SEAL_KEY": key, "REDIS_PORT": str(self.redis_port)}
        self.processes = {}

    def start(self):
        self.start_redis()
        for number in range(len(self.node_ports)):
            self.start_node(number)
        servers = enumerate(self.node_ports, 1)
        servers = "\n".join(f"    server n{n} 127.0.0.1:{port}" for n, port in servers)
        path = self.folder / "haproxy.cfg"
        path.write_text(HAPROXY.format(port=self.port, servers=servers))
        self.spawn("haproxy", ["haproxy", "-q", "-W", "-db", "-f", str(path)])
        for number, port in enumerate(self.node_ports, 1):
            wait_for(f"node {number} is not ready", lambda port=port: is_ready(port))
        wait_for("the balancer has no node", lambda: is_ready(self.port))

    def start_redis(self):
        arguments = ["--port", str(self.redis_port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        # What was acknowledged survives a restart of the store.
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.spawn("redis", ["redis-server", *arguments, *durable])
        wait_for("Redis does not listen", lambda: listens(self.redis_port))

    def start_node(self, number, **env):
        address = f"127.0.0.1:{self.node_ports[number]}"
        command = [self.sabir, "serve", str(self.config), "--http", address]
        self.spawn(f"node{number + 1}", command, **env)

    def spawn(self, name, command, **env):
        env = {**self.env, **env}
        with open(self.folder / f"{name}.log", "ab") as log:
            started = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes[name] = started

    def end(self, name, how=signal.SIGTERM):
        """Ends a process, and waits for it."""
        process = self.processes.pop(name)
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        for name in list(self.processes):
            self.end(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    cluster = Cluster(*map(Path, sys.argv[1:2]))
    # Also in the background, where a shell lets programs ignore SIGINT.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(0))
    try:
        cluster.start()
        print(f"three nodes behind http://127.0.0.1:{cluster.port}/mcp", flush=True)
        signal.pause()
    finally:
        # A second signal does not leave anything behind.
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, signal.SIG_IGN)
        cluster.stop()


if __name__ == "__main__":
    main()
