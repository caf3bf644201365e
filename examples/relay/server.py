"""A small server with the official Python SDK, which speaks both eras of the protocol."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("new")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers of any size"""
    return a + b


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


if __name__ == "__main__":
    server.run("stdio")
