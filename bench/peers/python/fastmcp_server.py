"""The package fastmcp with JSON answers, on uvicorn with uvloop and httptools, without an access log.

Tools are coroutines, because others run in a thread each. They return plain text, because fastmcp
would add a structured copy of every other answer.
"""

import asyncio
import sys
from functools import partial
from typing import Annotated

import anyio
import uvicorn
from fastmcp import FastMCP
from pydantic import Field

import place

server = FastMCP("echo-server", version="0.1.0")


@server.tool(description="Says what it is told", output_schema=None)
async def echo(text: Annotated[str, Field(description="What to say")]) -> str:
    return text


@server.tool(description="Waits once, then says what it is told", output_schema=None)
async def wait(text: Annotated[str, Field(description="What to say")]) -> str:
    await asyncio.sleep(0)
    return text


async def search(
    query: Annotated[str, Field(description="What to look for")],
    folder: Annotated[str | None, Field(description="Where to look")] = None,
    limit: Annotated[int | None, Field(description="How many to find at most", ge=0)] = None,
) -> str:
    return f"{query} in {folder}, at most {limit}"


async def move(
    from_: Annotated[str, Field(description="What to move", alias="from")],
    to: Annotated[str, Field(description="Where to")],
) -> str:
    return f"{from_} to {to}"


for n in range(1, 11):
    server.tool(search, name=f"search_{n}", description="Looks for something", output_schema=None)
    if n < 10:  # twenty-one tools, as the other servers have
        server.tool(move, name=f"move_{n}", description="Moves something", output_schema=None)


def main() -> None:
    address = place.read(sys.argv)
    if address is None:
        serve = partial(server.run_stdio_async, show_banner=False, log_level="ERROR")
        anyio.run(serve, backend_options={"use_uvloop": True})
    else:
        host, port = address
        app = server.http_app(path="/mcp", json_response=True)
        uvicorn.run(app, host=host, port=port, **place.UVICORN)


if __name__ == "__main__":
    main()
