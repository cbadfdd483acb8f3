"""A server with the official Python SDK, which also speaks the revision without a handshake, over both transports.

With a port as argument it speaks HTTP there, otherwise standard input and output.
"""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("lamps")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(steps: int, context: Context) -> str:
    """Says how far it is."""
    for step in range(steps):
        await context.report_progress(step + 1, steps, f"Step {step + 1}")
    return "Counted."


@server.tool()
async def switch(context: Context) -> str | InputRequiredResult:
    """Asks which lamp, and is called again with the answer."""
    given = (context.input_responses or {}).get("lamp")
    if given is None:
        schema = {"type": "object", "properties": {"lamp": {"type": "string"}}, "required": ["lamp"]}
        wanted = ElicitRequestFormParams(message="Which lamp?", requested_schema=schema)
        return InputRequiredResult(input_requests={"lamp": ElicitRequest(params=wanted)})
    return f"Answered: {given.action}"


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
