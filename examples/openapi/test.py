"""Real APIs end to end: httpbin, jupyter_server and kinto from PyPI, on this machine.

usage: test.py [httpbin] [jupyter] [kinto] (SABIR: the binary; the APIs run in this Python)
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SABIR = os.environ.get("SABIR", "sabir")
HTTPBIN = "from httpbin import app; import sys; app.run(port=int(sys.argv[1]))"


class Client:
    """An MCP client on a pipe."""

    def __init__(self, folder, **env):
        self.process = subprocess.Popen([SABIR, "serve", folder, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        self.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def ask(self, method, params):
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.number:
                return message["result"] if "result" in message else message["error"]

    def call(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def text(self, name, **arguments):
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def json(self, name, **arguments):
        return json.loads(self.text(name, **arguments))

    def names(self):
        return [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, port, folder):
    """A server, until the end of the block."""
    log = open(Path(folder, "server.log"), "wb")
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        for _ in range(600):
            if process.poll() is not None:
                sys.exit(f"error: {command[0]} ended:\n{Path(folder, 'server.log').read_text()[-2000:]}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(20)


def httpbin(folder):
    port = free_port()
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    file = Path(folder, "sabir.toml")
    file.write_text(file.read_text().replace("8765", str(port)))
    with running([sys.executable, "-c", HTTPBIN, str(port)], port, folder):
        client = Client(folder)
        names = client.names()
        assert "status" in names and "httpbin_get_get" in names and "httpbin_post_post" in names, names
        assert not any("delay" in name or "basic-auth" in name for name in names), names
        # Words of the request arrive as they were given.
        order = client.call("order", shop="../status/500", item="tea & cake", count=2, express=True)
        assert order["structuredContent"] == {"item": "tea & cake", "count": 2, "note": "for ../status/500: "}, order
        refused = client.call("order", shop="..", item="x", count=1)
        assert "must not be empty" in json.dumps(refused), refused
        assert client.json("slides") == ["Wake up to WonderWidgets!", "Overview"]
        # Images, errors, redirects, long answers, files.
        picture = client.call("httpbin_get_image_png")["content"][0]
        assert picture["type"] == "image" and picture["mimeType"] == "image/png", picture
        failed = client.call("status", codes="404")
        assert failed["isError"] and failed["content"][0]["text"].startswith("HTTP 404 Not Found"), failed
        assert client.json("httpbin_get_redirect_n", n=2)["url"].endswith("/get")
        long = client.call("httpbin_get_stream_n", n=100)["content"]
        assert len(long) == 1 or long[-1]["type"] == "resource_link", long
        sent = client.json("send_file", path="README.md")
        assert sent.startswith("# An HTTP API as tools"), sent
        assert "cannot read the file" in json.dumps(client.call("send_file", path="../secret"))
        agent = client.json("httpbin_get_headers")["headers"]
        assert agent["User-Agent"].startswith("sabir/") and "Authorization" not in agent, agent
        client.close()
    print(f"httpbin: {len(names)} tools")


def jupyter(folder):
    import jupyter_server

    port = free_port()
    api = Path(jupyter_server.__file__).parent / "services/api/api.yaml"
    shutil.copy(api, Path(folder, "api.yaml"))
    home = Path(folder, "home")
    home.mkdir()
    Path(folder, "sabir.toml").write_text(
        f'[[openapi]]\nname = "jupyter"\npath = "api.yaml"\nbase_url = "http://127.0.0.1:{port}"\nmethods = ["*"]\n'
        'auth = [{ type = "api_key", name = "Authorization", prefix = "token ", env = "JUPYTER_KEY" }]\n'
    )
    command = [sys.executable, "-m", "jupyter_server", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.open_browser=False",
               "--IdentityProvider.token=s3cret", f"--ServerApp.root_dir={home}", "--allow-root", "--ServerApp.base_url=/"]
    with running(command, port, folder):
        client = Client(folder, JUPYTER_KEY="s3cret")
        names = client.names()
        assert "jupyter_get_api_contents_path" in names, names
        text = "première ligne\n" * 3
        client.call("jupyter_put_api_contents_path", path="note.txt", type="file", format="text", content=text)
        assert (home / "note.txt").read_text() == text
        read = client.json("jupyter_get_api_contents_path", path="note.txt", content=1)
        assert read["content"] == text, read
        missing = client.call("jupyter_get_api_contents_path", path="none.txt")
        assert missing["isError"] and "HTTP 404" in missing["content"][0]["text"], missing
        gone = client.call("jupyter_delete_api_contents_path", path="note.txt")
        assert not gone.get("isError") and not (home / "note.txt").exists(), gone
        client.close()
        # Without the token the API refuses, in its own words.
        stranger = Client(folder, JUPYTER_KEY="wrong")
        refused = stranger.call("jupyter_get_api_contents_path", path="x")
        assert refused["isError"] and "HTTP 403" in refused["content"][0]["text"], refused
        stranger.close()
    print(f"jupyter_server: {len(names)} tools")


def kinto(folder):
    port = free_port()
    ini = Path(folder, "kinto.ini")
    settings = [f"kinto.{part}_backend = kinto.core.{part}.memory" for part in ("storage", "cache", "permission")]
    settings += ["kinto.userid_hmac_secret = x", "multiauth.policies = basicauth", "kinto.bucket_create_principals = system.Authenticated"]
    server = f"[server:main]\nuse = egg:waitress#main\nhost = 127.0.0.1\nport = {port}\n"
    ini.write_text("[app:main]\nuse = egg:kinto\n" + "\n".join(settings) + "\n\n" + server)
    Path(folder, "sabir.toml").write_text(
        f'[[openapi]]\nname = "kinto"\nurl = "http://127.0.0.1:{port}/v1/__api__"\nbase_url = "http://127.0.0.1:{port}/v1"\nmethods = ["*"]\nmax_tools = 100\ncache = "none"\n'
        'auth = [{ type = "basic", user = "ann", env = "PASSWORD" }]\n'
    )
    command = [Path(sys.executable).parent / "kinto", "start", "--ini", ini, "--port", str(port)]
    with running(command, port, folder):
        time.sleep(1)
        client = Client(folder, PASSWORD="p")
        names = client.names()
        calls = {name.removeprefix("kinto_"): name for name in names}
        if "call_operation" in calls:
            call = lambda operation, **arguments: client.call("kinto_call_operation", operation=operation, arguments=arguments)
        else:
            call = lambda operation, **arguments: client.call(calls[operation], **arguments)
        found = call("server_info")
        assert '"project_name":"kinto"' in found["content"][0]["text"].replace(": ", ":"), found
        for result in (
            call("update_bucket", id="b"),
            call("update_collection", bucket_id="b", id="c"),
            *[call("create_record", bucket_id="b", collection_id="c", data={"n": n}) for n in range(5)],
        ):
            assert not result.get("isError"), result
        page = call("get_records", bucket_id="b", collection_id="c", _limit=2)
        assert not page.get("isError"), page
        assert len(json.loads(page["content"][0]["text"])["data"]) == 2, page
        more = page["content"][-1]["text"]
        assert "For the next page call again with" in more and "_token = " in more, page
        token = more.split("_token = ")[1].split(",")[0]
        second = call("get_records", bucket_id="b", collection_id="c", _limit=2, _token=token)
        assert len(json.loads(second["content"][0]["text"])["data"]) == 2, second
        missing = call("get_record", bucket_id="b", collection_id="c", id="none")
        assert missing["isError"] and "HTTP 404" in missing["content"][0]["text"], missing
        client.close()
    print(f"kinto: {len(names)} tools")


for real in (httpbin, jupyter, kinto):
    if real.__name__ not in (sys.argv[1:] or real.__name__):
        continue
    with tempfile.TemporaryDirectory() as scratch:
        real(scratch)
