"""The server of `examples/relay` in the legacy era only: the same SDK, limited to the handshake."""

import sys
from pathlib import Path

from mcp import MCPError, types
from mcp.server.lowlevel import server as lowlevel
from mcp.server.runner import serve_loop

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "examples" / "relay"))
import server as example  # noqa: E402


async def refuse(_context, _params):
    raise MCPError(types.METHOD_NOT_FOUND, "Method not found")


# On the standard streams the SDK lets the first message decide the era.
lowlevel.serve_dual_era_loop = serve_loop
example.server._lowlevel_server.add_request_handler("server/discover", types.RequestParams, refuse)
example.run()
