"""Two nodes with each kind of store: Redis with TLS, a master that a Sentinel names, a Redis Cluster.

    servers.py

All kinds at once. Every request goes to the other node than the one before. Of the Sentinel's servers the
master is killed.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

from chaos import Chaos, configure
from clients import PATIENCE, Legacy
from run import Cluster, free_ports, is_ready, listens, wait_for


class Pair(Cluster):
    """Two nodes, and the servers of their store."""

    def __init__(self):
        super().__init__(count=2)
        self.turns = itertools.cycle(self.node_ports)

    @property
    def port(self):
        return next(self.turns)

    @port.setter
    def port(self, _):
        """There is no balancer."""

    def redis(self, port, *arguments):
        folder = self.folder / f"redis-{port}"
        folder.mkdir()
        place = ["--dir", str(folder), "--bind", "127.0.0.1", "--save", ""]
        self.spawn(f"redis-{port}", ["redis-server", *arguments, *place])

    def start(self):
        config, _ = configure(self, ["user"], f"1000.{os.getpid()}")
        plain = "redis://127.0.0.1:${REDIS_PORT}"
        assert plain in config
        self.config.write_text(config.replace(plain, self.store()))
        for number in range(len(self.node_ports)):
            self.start_node(number)
        for port in self.node_ports:
            wait_for(f"{type(self).__name__}: a node is not ready", lambda port=port: is_ready(port))

    def fail(self):
        """Nothing, or a fault that must not end a session."""


class Tls(Pair):
    def store(self):
        def openssl(*arguments):
            done = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"error: openssl: {done.stderr}")

        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test", "-days", "1")
        openssl(*new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=redis")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "1"]
        openssl("x509", "-req", "-in", "request.pem", "-out", "cert.pem", *signed)
        files = {"cert": "cert.pem", "key": "key.pem", "ca-cert": "ca.pem"}
        files = [word for name, file in files.items() for word in (f"--tls-{name}-file", str(self.folder / file))]
        port = self.redis_port
        self.redis(port, "--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no", *files)
        self.env["SSL_CERT_FILE"] = str(self.folder / "ca.pem")
        wait_for("Redis does not listen", lambda: listens(port))
        return f"rediss://127.0.0.1:{port}"


class Sentinel(Pair):
    def store(self):
        self.master, replica, sentinel = free_ports(3)
        for port in (self.master, replica):
            self.redis(port, "--port", str(port), "--repl-diskless-sync-delay", "0")
            wait_for("Redis does not listen", lambda port=port: listens(port))
        cli(replica, "REPLICAOF", "127.0.0.1", str(self.master))
        linked = "master_link_status:up"
        wait_for("the replica is not connected", lambda: linked in cli(replica, "INFO", "replication"))
        file = self.folder / "sentinel.conf"
        lines = [f"sentinel monitor main 127.0.0.1 {self.master} 1"]
        lines += ["sentinel down-after-milliseconds main 1000", "sentinel failover-timeout main 10000"]
        file.write_text("\n".join([f"port {sentinel}", *lines, ""]))
        self.redis(sentinel, str(file), "--sentinel")
        # It must have heard of the replica.
        known = "slaves=1"
        wait_for("the Sentinel knows no replica", lambda: known in cli(sentinel, "INFO", "sentinel"))
        return f"redis+sentinel://127.0.0.1:{sentinel}/main"

    def fail(self):
        time.sleep(0.5)  # for the replica
        self.processes.pop(f"redis-{self.master}").kill()


class Sharded(Pair):
    def store(self):
        ports = free_ports(6)
        for port, bus in zip(ports[:3], ports[3:]):
            self.redis(port, "--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(bus))
            wait_for("Redis does not listen", lambda port=port: listens(port))
        hosts = [f"127.0.0.1:{port}" for port in ports[:3]]
        create = ["redis-cli", "--cluster", "create", *hosts, "--cluster-yes"]
        subprocess.run(create, check=True, capture_output=True, timeout=PATIENCE)
        state = "cluster_state:ok"
        for port in ports[:3]:
            wait_for("the cluster is not ready", lambda port=port: state in cli(port, "CLUSTER", "INFO"))
        return f"redis+cluster://{hosts[0]},{hosts[1]}"


def cli(port, *words):
    done = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True)
    return done.stdout


def use(chaos, pair):
    """Does everything that needs the store or the bus, in one session that outlives a fault."""
    client = Legacy(chaos, pair, "user")
    client.revision = "2025-11-25"
    client.others = [client]
    client.random.choice = lambda choices: choices[-1]
    client.begin()
    session = client.session
    for _ in range(2):
        for step in (client.work, client.ask, client.stream, client.again, client.cancel):
            client.last_id += 1
            step()
    pair.fail()
    client.finished = None
    # Every node finds the store again by itself; until then it refuses what changes a session.
    deadline = time.monotonic() + PATIENCE
    for port in pair.node_ports:
        status = 0
        while status != 200 and time.monotonic() < deadline:
            client.last_id += 1
            params = {"level": "error"}
            message = {"id": client.last_id, "method": "logging/setLevel", "params": params}
            status, body, _ = client.post(message, port=port)
            if status not in (200, 503):
                return chaos.violate(4, f"{status} after the fault: {body}")
            time.sleep(0.1)
        if status != 200:
            return chaos.violate(4, f"a node has not found the store again: {body}")
    for _ in range(4):
        client.last_id += 1
        client.work()
    if client.session != session:
        return chaos.violate(4, "the session is not served after the fault")
    # The store may still be moving: a refused end is repeated, as any client does.
    while client.session == session and time.monotonic() < deadline:
        client.end()
    check_status(chaos, pair)


def check_status(chaos, pair):
    """Both nodes are known, and count what they ask of the store."""
    command = [pair.sabir, "cluster", "status", str(pair.config), "--json"]
    deadline = time.monotonic() + PATIENCE
    nodes = []
    # A store that has lost its master hears of the nodes again after some seconds.
    while len(nodes) != 2 and time.monotonic() < deadline:
        done = subprocess.run(command, env=pair.env, capture_output=True, text=True)
        nodes = json.loads(done.stdout or "[]")
    addresses = {f"127.0.0.1:{port}" for port in pair.node_ports}
    if {node["address"] for node in nodes} != addresses:
        chaos.violate(0, f"`sabir cluster status` shows {nodes} {done.stderr}")
    metrics = "".join(get(port, "/metrics") for port in pair.node_ports)
    asked = re.findall(r'sabir_cluster_requests_total\{outcome="answered"\} (\d+)', metrics)
    if len(asked) != 2 or min(map(int, asked)) < 10:
        chaos.violate(0, f"the nodes count {asked} requests to the store")


def get(port, path):
    token = {"Authorization": "Bearer secret-of-user"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=token)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return response.read().decode()


def check(kind, failures):
    chaos, pair = Chaos(1), kind()
    try:
        pair.start()
        use(chaos, pair)
        for what in ("asked", "resumed", "heard again", "cancelled", "ended"):
            if not chaos.counts.get(what):
                chaos.violate(0, f"nothing was {what}")
        failures += [f"{kind.__name__}: {violation}" for violation in chaos.violations]
        print(f"  {kind.__name__}:", ", ".join(f"{n} {what}" for what, n in sorted(chaos.counts.items())))
        if chaos.violations:
            for log in sorted(pair.folder.glob("*.log")):
                print(f"--- {log.name}", *log.read_text().splitlines()[-8:], sep="\n")
    except (Exception, SystemExit) as error:
        failures.append(f"{kind.__name__}: {error!r}")
    finally:
        pair.stop()


def main():
    for program in ("redis-cli", "openssl"):
        if not shutil.which(program):
            raise SystemExit(f"error: {program} not found (apt-get install redis-server openssl)")
    failures = []
    threads = [threading.Thread(target=check, args=(kind, failures)) for kind in (Tls, Sentinel, Sharded)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        print(f"error: {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
