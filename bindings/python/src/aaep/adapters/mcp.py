"""MCP: what a server elicits is asked of the person.

    async with hub.session("Books a table.") as session:
        async with Client(server, elicitation_callback=Mcp(session).elicit) as client:
            await client.call_tool("book", {})

Each field of a form is a question. A field that is true or false, and a form without fields, is a confirmation, so that
only an accept is a yes. If one question stays without an answer, the server is told that the person cancelled.
"""

from __future__ import annotations

from typing import Any

from mcp_types import ElicitResult

from ..asks import clarification
from ..asks import confirmation as confirmation_event
from ..errors import NoAnswer, WrongCall
from ..session import AsyncSession


class _Declined(Exception):
    pass


class Mcp:
    """Asks the person what MCP servers want to know."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def elicit(self, context: Any, params: Any) -> ElicitResult:
        """For `Client(..., elicitation_callback=...)`."""
        if params.mode != "form":
            self._session.say(f"{params.message} The address is {params.url}")
            return ElicitResult(action="cancel")
        schema: dict[str, Any] = dict(params.requested_schema)
        fields: dict[str, dict[str, Any]] = schema.get("properties") or {}
        try:
            if not fields:
                await self._confirm(params.message, must_accept=True)
                return ElicitResult(action="accept", content={})
            content: dict[str, Any] = {}
            for name, it in fields.items():
                content[name] = await self._ask(params.message, name, it)
        except _Declined:
            return ElicitResult(action="decline")
        except (NoAnswer, WrongCall):
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content=content)

    async def _ask(self, message: str, name: str, field: dict[str, Any]) -> str | int | float | bool:
        question = f"{message} {field.get('title') or name}: {field.get('description') or ''}".rstrip(": ")
        kind = field.get("type")
        if kind == "boolean":
            return await self._confirm(question)
        choices = _choices(field)
        if kind not in ("string", "number", "integer"):
            raise WrongCall(f"A field of the type {kind} cannot be asked.")
        type: Any = "text" if kind == "string" else "number"
        asked = clarification(self._session, question, type=type, choices=choices)
        answer = await self._session._answer_async(asked)  # pyright: ignore[reportPrivateUsage]
        if isinstance(answer, (int, float)) and not field.get("minimum", answer) <= answer <= field.get("maximum", answer):
            raise WrongCall("The answer is outside of the bounds.")
        return int(answer) if kind == "integer" else answer

    async def _confirm(self, action: str, must_accept: bool = False) -> bool:
        asked = confirmation_event(
            self._session, action, consequence="A server asks this. What it does then may be impossible to undo."
        )
        outcome = await self._session.confirm_async(asked)
        if not outcome and (must_accept or outcome.decided_by != "reply"):
            if outcome.name == "reject" and outcome.decided_by == "reply":
                raise _Declined
            raise NoAnswer(outcome)
        return bool(outcome)


def _choices(field: dict[str, Any]) -> dict[str, str] | None:
    if "enum" in field:
        labels = field.get("enumNames") or field["enum"]
        return dict(zip(field["enum"], labels))
    named: list[dict[str, Any]] = field.get("oneOf") or []
    return {it["const"]: it.get("title") or it["const"] for it in named} or None
