"""A person with a client of the Python SDK logs in at authlib, and calls the real binary.

python_sdk.py SABIR FOLDER: the binary, and a folder for its configuration.
"""

import asyncio
import logging
import os
import pathlib
import socket
import subprocess
import sys
import time
from urllib.parse import parse_qs, urlsplit

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # everything is on this machine

import httpx2
from authlib_issuer import Issuer
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

CALLBACK = "http://127.0.0.1:8457/callback"


class Storage:
    """The storage of the SDK."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def call(url: str, person: str) -> tuple[list[str], str, str]:
    """The tools that a person sees, the result of a call, and the token."""
    answered: dict[str, str] = {}

    async def visit(link: str) -> None:
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(f"{link}&user={person}", follow_redirects=False)
        answer = parse_qs(urlsplit(response.headers["location"]).query)
        answered.update({name: values[0] for name, values in answer.items()})

    async def answer() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: answered.get(name) for name in ("code", "state", "iss")})

    storage = Storage()
    asked = {"client_name": "a test", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    metadata = OAuthClientMetadata.model_validate(asked)
    auth = OAuthClientProvider(url, metadata, storage, visit, answer)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("read", {})
            return tools, result.content[0].text, storage.tokens.access_token


def wait_for(port: int, log: pathlib.Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)


logging.getLogger("werkzeug").setLevel(logging.ERROR)
sabir, folder = sys.argv[1], pathlib.Path(sys.argv[2])
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
issuer = Issuer("notes-of-the-team")
(folder / "sabir.toml").write_text(
    f"""[auth]
issuer = "{issuer.url}"
audience = ["notes-of-the-team"]
scopes = ["notes:read"]

[[command]]
name = "read"
description = "Read notes"
run = ["echo", "notes"]
scopes = ["notes:read"]

[[command]]
name = "write"
description = "Write notes"
run = ["echo", "written"]
scopes = ["notes:write"]
"""
)
log = folder / "log"
with log.open("w") as stderr:
    command = [sabir, "serve", "--http", f"127.0.0.1:{port}", "--log", "debug"]
    server = subprocess.Popen(command, cwd=folder, stderr=stderr)
    try:
        wait_for(port, log)
        tools, text, token = asyncio.run(call(f"http://127.0.0.1:{port}/mcp", "ann"))
    finally:
        server.terminate()
        server.wait()
assert (tools, text.strip()) == (["read"], "notes"), (tools, text)
assert "ann@" in log.read_text(), "the caller is in the log"
assert token not in log.read_text() and "eyJ" not in log.read_text(), "no token is logged"
print("ann came in with the Python SDK and a token of authlib")
