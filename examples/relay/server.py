"""A small server with the official Python SDK, which speaks both eras of the protocol."""

import os
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("new")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers of any size"""
    return a + b


@server.tool()
def translate(word: str) -> str:
    """Translate a word to German"""
    return {"yes": "ja", "no": "nein"}[word]


class Name(BaseModel):
    name: str


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


@server.tool()
def greet(who: Annotated[Name, Resolve(ask_name)]) -> str:
    """Greet the user, who is asked for a name"""
    return f"Hello {who.name}"


@server.tool()
async def count(context: Context) -> str:
    """Count to three"""
    for step in range(1, 4):
        await context.report_progress(step, 3)
    return "done"


@server.tool()
def internal_reset() -> str:
    """Not for clients"""
    return "reset"


@server.prompt()
def review(code: str) -> str:
    """Review some code"""
    return f"Please review this code:\n\n{code}"


@server.resource("motto://{language}")
def motto(language: str) -> str:
    """The motto in a language"""
    return {"en": "Serve what you have", "de": "Biete an, was du hast"}[language]


def run() -> None:
    """Serve behind a URL if PORT is set, else on the standard streams."""
    if port := os.environ.get("PORT"):
        server.run("streamable-http", port=int(port))
    else:
        server.run("stdio")


if __name__ == "__main__":
    run()
