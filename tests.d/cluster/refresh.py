"""Three nodes, one account at an upstream: its token is renewed once, however many nodes ask.

    refresh.py

The upstream and its authorization server are here. A refresh token is good once; who comes with a spent one
gets nothing.
"""

import http.client
import json
import re
import secrets
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))
from run import Cluster, is_ready, wait_for  # noqa: E402

LIFE = 4  # s; of an access token
EXPIRIES = 3

CONFIG = """
[server]
name = "refresh"
[seal]
key_env = "SABIR_SEAL_KEY"
[cluster]
url = "redis://127.0.0.1:${{REDIS_PORT}}"
[[upstream]]
name = "up"
url = "{origin}/mcp"
auth = {{ kind = "oauth", issuer = "{origin}", shared = true }}
"""


class Provider(ThreadingHTTPServer):
    """A server with one tool, for clients with a token of its own."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.access, self.refresh = {}, set()
        # When tokens were renewed, and how often a spent refresh token was used.
        self.renewed, self.spent = [], 0

    def issue(self):
        access, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self.access[access] = time.monotonic() + LIFE
        self.refresh.add(refresh)
        return {"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": LIFE}

    def token(self, form):
        with self.lock:
            if form.get("grant_type") == "authorization_code":
                return self.issue()
            if form.get("grant_type") == "refresh_token" and form.get("refresh_token") in self.refresh:
                self.refresh.discard(form["refresh_token"])
                self.renewed.append(time.monotonic())
                return self.issue()
            self.spent += form.get("grant_type") == "refresh_token"
            return None


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Requests are not logged."""

    def reply(self, status, body=None, **headers):
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        origin, url = self.server.origin, urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            self.reply(200, {"resource": f"{origin}/mcp", "authorization_servers": [origin]})
        elif url.path.startswith("/.well-known/oauth-authorization-server"):
            places = {"authorization": "authorize", "token": "token", "registration": "register"}
            places = {f"{kind}_endpoint": f"{origin}/{path}" for kind, path in places.items()}
            more = {"code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"]}
            self.reply(200, {"issuer": origin, **places, **more})
        elif url.path == "/authorize":
            back = {"code": "code", "state": query["state"], "iss": origin}
            self.reply(302, Location=f"{query['redirect_uri']}?{urllib.parse.urlencode(back)}")
        else:
            self.reply(405 if url.path == "/mcp" else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path == "/register":
            return self.reply(201, {"client_id": "sabir"})
        if self.path == "/token":
            tokens = self.server.token(dict(urllib.parse.parse_qsl(body)))
            return self.reply(200, tokens) if tokens else self.reply(400, {"error": "invalid_grant"})
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if self.server.access.get(token, 0) < time.monotonic():
            place = f"{self.server.origin}/.well-known/oauth-protected-resource/mcp"
            return self.reply(401, {}, WWW_Authenticate=f'Bearer resource_metadata="{place}"')
        return self.message(json.loads(body))

    def message(self, message):
        """The endpoint: an older server without sessions."""
        if "id" not in message:
            return self.reply(202)
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "up", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "hello"}]},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results:
            answer["result"] = results[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "method not found"}
        return self.reply(200, answer)


def login(cluster):
    """What a person does: opens the link that is printed."""
    command = [cluster.sabir, "upstream", "login", "up", str(cluster.config)]
    process = subprocess.Popen(command, env=cluster.env, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        link = re.search(r"http://127\.0\.0\.1:\d+/authorize\S*", line)
        if link:
            urllib.request.urlopen(link[0], timeout=60).read()
            break
    rest = process.stderr.read()
    if process.wait(60) != 0:
        raise SystemExit(f"error: the login failed: {rest}")


def call(port):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "refresh", "version": "1"},
    }
    params = {"name": "up_hello", "arguments": {}, "_meta": meta}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "up_hello",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection.request("POST", "/mcp", body, headers)
    return connection.getresponse().read().decode()


def main():
    provider = Provider()
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    cluster = Cluster()
    cluster.config = cluster.folder / "sabir.toml"
    cluster.config.write_text(CONFIG.format(origin=provider.origin))
    failed, calls, is_over = [], [], threading.Event()

    def work(port):
        while not is_over.is_set():
            answer = call(port)
            (calls if '"text":"hello"' in answer.replace(" ", "") else failed).append(answer[:300])
            time.sleep(0.02)

    try:
        cluster.start_redis()
        login(cluster)
        for number in range(3):
            cluster.start_node(number)
        for port in cluster.node_ports:
            wait_for("a node is not ready", lambda port=port: is_ready(port))
            wait_for("a node does not serve the upstream", lambda port=port: "hello" in call(port))
        threads = [threading.Thread(target=work, args=(port,)) for port in cluster.node_ports for _ in range(3)]
        for thread in threads:
            thread.start()
        before, began = len(provider.renewed), time.monotonic()
        wait_for("no token was renewed", lambda: len(provider.renewed) >= before + EXPIRIES)
        took = time.monotonic() - began
        is_over.set()
        for thread in threads:
            thread.join()
        # A token is renewed in the last quarter of its life, and not before.
        pauses = [after - before for before, after in zip(provider.renewed, provider.renewed[1:])]
        early = [f"{pause:.2f} s" for pause in pauses if pause < LIFE / 2]
        if early or provider.spent:
            what = f"renewed again after {early}" if early else f"{provider.spent} spent refresh tokens"
            raise SystemExit(f"error: rule 11: {what}")
        if failed:
            raise SystemExit(f"error: {len(failed)} calls failed, e.g. {failed[0]}")
        print(f"  credentials: {len(pauses) + 1} renewals in {took:.0f} s, for {len(calls)} calls on three nodes")
    finally:
        is_over.set()
        cluster.stop()
        provider.shutdown()


main()
