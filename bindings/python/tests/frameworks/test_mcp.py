"""MCP: a server that elicits, and a client that asks the person."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from aaep.adapters.mcp import Mcp

from ..support import PATIENCE
from ..test_hub import WithHub


class Table(BaseModel):
    guests: int
    where: Literal["inside", "outside"]
    pay: bool


class Nothing(BaseModel):
    pass


def server(found: list[Any], schema: Any) -> MCPServer:
    it = MCPServer("tables")

    @it.tool()
    async def book(ctx: Context) -> str:
        result = await ctx.elicit("Book a table?", schema)
        found.append((result.action, getattr(result, "data", None)))
        return result.action

    return it


class Elicitation(WithHub):
    def elicit(self, schema: Any, *answers: Any) -> tuple[str, Any]:
        def answer() -> None:
            for it in answers:
                ask = self.person.next_ask()
                if ask.is_confirmation:
                    ask.accept() if it else ask.reject()
                else:
                    ask.answer(it)

        async def run() -> None:
            async with self.agent().session("Books a table.") as session:
                async with Client(server(found, schema), elicitation_callback=Mcp(session).elicit, mode="legacy") as client:
                    await asyncio.wait_for(client.call_tool("book", {}), PATIENCE)

        found: list[Any] = []
        threading.Thread(target=answer, daemon=True).start()
        asyncio.run(run())
        return found[0]

    def test_a_form_is_asked_field_by_field(self) -> None:
        expected = ("accept", Table(guests=4, where="inside", pay=True))
        self.assertEqual(self.elicit(Table, 4, "inside", True), expected)
        self.assertEqual(self.elicit(Table, 2, "outside", False)[1], Table(guests=2, where="outside", pay=False))

    def test_a_form_without_fields_is_a_confirmation(self) -> None:
        self.assertEqual(self.elicit(Nothing, True)[0], "accept")
        self.assertEqual(self.elicit(Nothing, False)[0], "decline")

    def test_nobody_there_is_a_cancel(self) -> None:
        self.person.close()
        self.assertEqual(self.elicit(Table)[0], "cancel")
        self.assertEqual(self.elicit(Nothing)[0], "cancel")




del WithHub
