"""Clients of three nodes behind a balancer, while nodes and the store are killed, stopped and restarted.

    chaos.py SECONDS [SEED]         faults of every kind, one after the other, and then none
    chaos.py --kills N [SEED]       N times kill -9, of any node

Every call carries a number of its own, which the tool appends to a file: the truth. Afterwards, the
history of the clients is compared with it. The numbers of the rules are those of the table "Proved" of
docs/cluster.md.
"""

import base64
import glob
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))
from run import Cluster, free_ports, is_ready, listens, wait_for  # noqa: E402

from clients import LOSS, PATIENCE, STORE, Legacy, Listener, Modern, ModernListener  # noqa: E402
from extras import Limited, Old, Parked  # noqa: E402

# How many of each kind there are.
CLIENTS = {Legacy: 9, Modern: 4, Parked: 2, Limited: 2, Listener: 2, ModernListener: 2, Old: 2}

# A fault may be noticed for so long after it; then everything must work.
TAIL = 10
QUIET = 6

# The files that a node without clients has open, at most.
FILES = 60

# How long a change of the tools may take to be heard: the files are read twice a second.
HEARD = 15

# Calls that all users together may make in a second, and at once. So long after the store was away they
# are counted together again.
RATE = 2
COUNTED = 3

CONFIG = """
[server]
name = "chaos"
[seal]
key_env = "SABIR_SEAL_KEY"
[cluster]
url = "redis://127.0.0.1:${REDIS_PORT}"
[limits]
grace = "5s"
[[command]]
name = "work"
description = "Note a number, and say it"
run = ["sh", "@WORK@", "{number}"]
input = { number = "integer" }
concurrency = 64
[[command]]
name = "count"
description = "Count to six, and say a number"
run = ["sh", "@COUNT@", "{number}"]
input = { number = "integer" }
progress = '(\d+)/(\d+)'
concurrency = 64
[[command]]
name = "linger"
description = "Take long"
run = ["sleep", "@LINGER@"]
concurrency = 64
timeout = "5m"
[[command]]
name = "changing"
description = "Version @VERSION@"
run = ["true"]
[[command]]
name = "limited"
description = "Be called too often"
run = ["true"]
concurrency = 64
[[limit]]
rate = "@RATE@/s"
tools = ["limited"]
[[upstream]]
name = "up"
run = ["@FIXTURE@", "stdio", "2026-07-28"]
"""

# A server of an older revision, whose calls are alive while it asks.
LEGACY = """
[[upstream]]
name = "legacy"
url = "http://127.0.0.1:{port}/mcp"
"""

# A balancer for one connection: it can be cut, and held up.
LINK = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen link
    bind 127.0.0.1:{port}
    server redis 127.0.0.1:{redis}
"""

# It lets a program believe that it is later.
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


# What must have happened, or nothing was tested.
NEEDED = ["answered", "asked", "cancelled", "changes heard", "ended", "heard again", "intrusions", "old"]
NEEDED += ["resumed", "sessions", "streams", "parked", "limited", "allowed"]


class Linked(Cluster):
    """Three nodes, each of which has a way to the store of its own."""

    def __init__(self):
        super().__init__()
        self.links = []
        while not self.links or set(self.links) & {self.port, self.redis_port, *self.node_ports}:
            self.upstream, *self.links = free_ports(1 + len(self.node_ports))

    def start(self):
        command, env = [os.environ["FIXTURE"], "http", "2025-11-25"], {**self.env, "PORT": str(self.upstream)}
        # It exits when its standard input is closed.
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.processes["upstream"] = subprocess.Popen(command, env=env, stdin=pipe, stdout=null, stderr=null)
        wait_for("the upstream does not listen", lambda: listens(self.upstream))
        super().start()

    def start_redis(self):
        super().start_redis()
        for number in range(len(self.links)):
            if f"link{number + 1}" not in self.processes:
                self.start_link(number)

    def start_link(self, number):
        path = self.folder / f"link{number + 1}.cfg"
        path.write_text(LINK.format(port=self.links[number], redis=self.redis_port))
        self.spawn(f"link{number + 1}", ["haproxy", "-q", "-db", "-f", str(path)])
        wait_for("the way to the store is not open", lambda: listens(self.links[number]))

    def start_node(self, number, **env):
        super().start_node(number, REDIS_PORT=str(self.links[number]), **env)

    def restart_node(self, number, how, **env):
        self.end(f"node{number + 1}", how)
        self.start_node(number, **env)
        wait_for(f"node{number + 1} is not ready", lambda: is_ready(self.node_ports[number]))

    def hold(self, name, seconds):
        """Stops a process for a while."""
        self.processes[name].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.processes[name].send_signal(signal.SIGCONT)


class Chaos:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.violations = []
        self.counts = {}
        self.history = []  # (number, "answered" | "refused" | "unknown")
        self.faults = []  # (kind, begun, ended)
        self.changes = []  # when the tools were changed
        self.lock = threading.Lock()
        self.is_over = False
        self.last_number = 0

    def number(self):
        with self.lock:
            self.last_number += 1
            return self.last_number

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def violate(self, rule, what):
        with self.lock:
            self.violations.append(f"rule {rule}: {what}")

    def record(self, number, outcome):
        with self.lock:
            self.history.append((number, outcome))
        self.count(outcome)

    def is_disturbed(self, since, kinds=None):
        """Whether a fault may have had an effect since then."""
        with self.lock:
            return any(
                (ended is None or ended + TAIL > since) and (kinds is None or kind in kinds)
                for kind, _, ended in self.faults
            )

    def fault(self, kind, work):
        """Records a fault while it lasts."""
        fault = [kind, time.monotonic(), None]
        with self.lock:
            self.faults.append(fault)
        work()
        with self.lock:
            fault[2] = time.monotonic()
        self.count(kind)


def disturb(chaos, cluster, seconds):
    """One fault after the other, of each kind at least once."""
    deadline = time.monotonic() + seconds
    # The store first: calls that need none have no other excuse then.
    kinds = [*STORE[:-1], *LOSS]
    rounds = 0
    while True:
        for kind in kinds:
            if rounds and time.monotonic() > deadline:
                return
            time.sleep(chaos.random.uniform(1, 2))
            number = chaos.random.randrange(len(cluster.node_ports))
            print(f"  {kind} {'' if kind in EVERYWHERE else f'node{number + 1}'}", flush=True)
            chaos.fault(kind, lambda kind=kind, number=number: commit(cluster, kind, number))
        chaos.random.shuffle(kinds)
        rounds += 1


# Faults that are not of one node.
EVERYWHERE = ("store", "stall", "reload")


def commit(cluster, kind, number):
    """Causes a fault."""
    node, link = f"node{number + 1}", f"link{number + 1}"
    if kind == "store":
        cluster.end("redis")
        time.sleep(1)
        cluster.start_redis()
    elif kind == "stall":
        cluster.hold("redis", 2)
    elif kind == "cut":
        cluster.end(link, signal.SIGKILL)
        time.sleep(2)
        cluster.start_link(number)
    elif kind == "freeze":
        cluster.hold(node, 2)
    elif kind == "reload":
        cluster.processes["haproxy"].send_signal(signal.SIGUSR2)
        time.sleep(0.5)
    elif kind == "clock":
        # The node is a minute ahead until it is started again.
        preload = glob.glob(FAKETIME)[0]
        fake = {"LD_PRELOAD": preload, "FAKETIME": "+60s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        cluster.restart_node(number, signal.SIGTERM, DONT_FAKE_MONOTONIC="1", **fake)
    elif kind == "together":
        # One node is killed, another one is frozen, and the store does not answer.
        other = f"node{(number + 1) % len(cluster.node_ports) + 1}"
        held = [threading.Thread(target=cluster.hold, args=(name, 2)) for name in (other, "redis")]
        for thread in held:
            thread.start()
        cluster.end(node, signal.SIGKILL)
        for thread in held:
            thread.join()
        cluster.start_node(number)
        wait_for(f"{node} is not ready", lambda: is_ready(cluster.node_ports[number]))
    else:
        cluster.restart_node(number, signal.SIGKILL if kind == "kill" else signal.SIGTERM)


def kill(chaos, cluster, kills):
    """Kills any node, again and again. The other two serve meanwhile."""
    for done in range(1, kills + 1):
        time.sleep(chaos.random.uniform(0, 0.5))
        number = chaos.random.randrange(len(cluster.node_ports))
        chaos.fault("kill", lambda number=number: commit(cluster, "kill", number))
        if done % 50 == 0:
            print(f"  {done} kills, {len(chaos.violations)} violations", flush=True)


def change(chaos, cluster, config):
    """Changes the tools of all nodes."""
    chaos.changes.append(time.monotonic())
    write(cluster, config, f"{len(chaos.changes)} after the start")


def write(cluster, config, version):
    """Writes the configuration at once: nodes read it at any time."""
    new = cluster.folder / "new.toml"
    new.write_text(config.replace("@VERSION@", version))
    new.rename(cluster.config)


def check_changes(chaos, listeners):
    """Every listener is notified of a change before the next one, in spite of faults."""
    ends = [*chaos.changes[1:], chaos.changes[-1] + HEARD]
    for begun, end in zip(chaos.changes, ends):
        for listener in listeners:
            if not any(begun <= time < end for time in listener.heard):
                kind, after = type(listener).__name__, end - begun
                chaos.violate(8, f"a {kind} did not hear of a change for {after:.0f} s")


def check_limits(chaos, clients, began):
    """All nodes together allow as much as one would; without the store at most twice as much."""
    allowed = sorted(time for client in clients if isinstance(client, Limited) for time in client.allowed)
    end = time.monotonic()
    most = 2 * (RATE * (end - began) + RATE)
    if len(allowed) > most:
        chaos.violate(10, f"{len(allowed)} calls were allowed (expected at most {most:.0f})")
    away = sorted((begun, ended) for kind, begun, ended in chaos.faults if kind in STORE)
    starts = [began, *(ended + COUNTED for _, ended in away)]
    for start, stop in zip(starts, [*(begun for begun, _ in away), end]):
        count = sum(start <= time < stop for time in allowed)
        most = 1.05 * (RATE * (stop - start) + RATE)
        if stop > start and count > most:
            chaos.violate(10, f"{count} calls in {stop - start:.1f} s (expected at most {most:.0f})")


def redis(cluster, *words):
    """The answer of Redis to a command, as lines."""
    with socket.create_connection(("127.0.0.1", cluster.redis_port), timeout=10) as sock:
        sock.sendall((" ".join(words) + "\r\nQUIT\r\n").encode())
        return sock.makefile("rb").read().decode(errors="replace").splitlines()


def check_left(chaos, cluster, linger):
    """Nothing stays: no program of a cancelled call, no connection of a client that has gone."""

    def files(name):
        return len(os.listdir(f"/proc/{cluster.processes[name].pid}/fd"))

    def programs():
        lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
        return sum(linger.encode() in line for line in lines)

    nodes = [name for name in cluster.processes if name.startswith("node")]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and (programs() or max(map(files, nodes)) > FILES):
        time.sleep(0.5)
    if programs():
        chaos.violate(13, f"{programs()} programs of cancelled calls still run")
    if max(map(files, nodes)) > FILES:
        chaos.violate(13, f"the nodes have {[files(name) for name in nodes]} files open")


def check_store(chaos, cluster):
    """No key stays for ever."""
    keys = [line for line in redis(cluster, "KEYS", "sabir:*") if line.startswith("sabir:")]
    for key in keys:
        if redis(cluster, "PTTL", key)[0] == ":-1":
            chaos.violate(13, f"the key {key} never expires")
    print(f"  {len(keys)} keys are left, all of them expire")


def compare(chaos, truth):
    """The history of the clients and the calls that really ran."""
    ran = {}
    for line in truth.read_text().split():
        ran[int(line)] = ran.get(int(line), 0) + 1
    for number, times in ran.items():
        if times > 1:
            chaos.violate(1, f"call {number} ran {times} times")
    for number, outcome in chaos.history:
        if outcome == "answered" and number not in ran:
            chaos.violate(1, f"call {number} was answered and never ran")
        if outcome == "refused" and number in ran:
            chaos.violate(1, f"call {number} was refused and ran")


def configure(cluster, names, linger):
    """The configuration of all nodes, but for the version of what changes."""
    truth = cluster.folder / "truth"
    truth.touch()
    work, count = cluster.folder / "work.sh", cluster.folder / "count.sh"
    work.write_text(f'echo "$1" >> {truth}; echo "did $1"\n')
    steps = "for i in 1 2 3 4 5 6; do echo $i/6; sleep 0.1; done"
    count.write_text(f'{steps}; echo "counted $1"\n')
    config = CONFIG.replace("@WORK@", str(work)).replace("@FIXTURE@", os.environ["FIXTURE"])
    config = config.replace("@COUNT@", str(count)).replace("@LINGER@", linger)
    config = config.replace("@RATE@", str(RATE))
    for name in names:
        digest = base64.b64encode(hashlib.sha256(f"secret-of-{name}".encode()).digest()).decode()
        config += f'[[token]]\nname = "{name}"\nhash = "sha256:{digest}"\n'
    cluster.config = cluster.folder / "sabir.toml"
    return config, truth


def run(chaos, cluster, clients, config, seconds, kills):
    """Lets the clients work under faults, and then without."""
    listeners, began = [client for client in clients if isinstance(client, Listener)], time.monotonic()
    threads = [threading.Thread(target=client.run, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    if kills:
        kill(chaos, cluster, kills)
    else:
        time.sleep(QUIET / 2)
        change(chaos, cluster, config)
        disturb(chaos, cluster, seconds - TAIL - QUIET * 1.5)
    time.sleep(TAIL)
    change(chaos, cluster, config)
    deadline = time.monotonic() + HEARD
    time.sleep(QUIET)
    last = chaos.changes[-1]
    while time.monotonic() < deadline and not all(any(t >= last for t in l.heard) for l in listeners):
        time.sleep(0.2)
    chaos.is_over = True
    for listener in listeners:
        listener.stop()
    deadline = time.monotonic() + PATIENCE * 2
    for client, thread in zip(clients, threads):
        thread.join(max(0, deadline - time.monotonic()))
        if thread.is_alive():
            chaos.violate(client.rule, f"a {type(client).__name__} hangs")
    check_changes(chaos, listeners)
    check_limits(chaos, clients, began)


def main():
    words = sys.argv[1:]
    kills = int(words.pop(1)) if words[0] == "--kills" else 0
    seconds, seed = 0 if kills else float(words[0]), int(words[1] if len(words) > 1 else 1)
    chaos = Chaos(seed)
    cluster = Linked()
    linger = f"1000.{os.getpid()}"
    kinds = [kind for kind, count in CLIENTS.items() for _ in range(count)]
    names = [f"user{n}" for n in range(len(kinds))]
    config, truth = configure(cluster, names, linger)
    config += LEGACY.format(port=cluster.upstream)
    write(cluster, config, "at the start")
    print(f"{f'{kills} kills' if kills else f'{seconds:.0f} s'} with seed {seed}", flush=True)
    try:
        cluster.start()
        clients = [kind(chaos, cluster, name) for kind, name in zip(kinds, names)]
        for client in clients:
            client.others = [other for other in clients if type(other) is Legacy]
        run(chaos, cluster, clients, config, seconds, kills)
        compare(chaos, truth)
        check_left(chaos, cluster, linger)
        check_store(chaos, cluster)
        if chaos.violations:
            for log in sorted(cluster.folder.glob("node*.log")):
                print(f"--- {log.name}", *log.read_text().splitlines()[-15:], sep="\n")
    finally:
        chaos.is_over = True
        cluster.stop()
    print(" ", ", ".join(f"{count} {what}" for what, count in sorted(chaos.counts.items())))
    for what in NEEDED:
        if not chaos.counts.get(what):
            chaos.violate(0, f"nothing was {what}")
    shown = {}
    for violation in chaos.violations:
        rule = violation.partition(":")[0]
        shown[rule] = shown.get(rule, 0) + 1
        if shown[rule] <= 5:
            print(f"error: {violation}")
    if shown:
        print("error:", ", ".join(f"{rule} {count} times" for rule, count in sorted(shown.items())))
    sys.exit(1 if chaos.violations else 0)


if __name__ == "__main__":
    main()
