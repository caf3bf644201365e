"""Python `mcp`: both eras. Modes: legacy, auto, or a revision to adopt without asking.

Takes a job and prints what it saw, as `clients/node/job.mjs` describes.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client


async def see(job: dict) -> dict:
    if "stdio" in job:
        command, *arguments = job["stdio"]
        target = stdio_client(StdioServerParameters(command=command, args=arguments))
    elif "sse" in job:
        target = sse_client(job["sse"])
    else:
        target = job["http"]

    async with Client(target, mode=job["mode"]) as client:
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            if (cursor := page.next_cursor) is None:
                break
        result = await client.call_tool(job["tool"], job["args"])
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise RuntimeError(f"the tool answered with an error: {text}")
        return {
            "revision": client.protocol_version,
            "tools": names,
            "text": text,
            "structured": result.structured_content,
        }


def causes(failure: BaseException) -> list[BaseException]:
    """What went wrong, without the task groups around it."""
    if isinstance(failure, BaseExceptionGroup):
        return [cause for inner in failure.exceptions for cause in causes(inner)]
    return [failure]


try:
    print(json.dumps(asyncio.run(see(json.loads(sys.argv[1])))))
except Exception as failure:
    sys.exit("\n".join(f"{type(cause).__name__}: {cause}" for cause in causes(failure)))
