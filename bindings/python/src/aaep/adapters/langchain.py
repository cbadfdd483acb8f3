"""LangChain and LangGraph: text in sentences, tools, approval, in a few lines.

    async with hub.session("Tidies up.") as session:
        people = LangChain(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        agent = create_agent(model, tools, middleware=[people.middleware])
        await people.run(agent, messages)

A tool that was denied gives the model an error as its result, as LangChain itself does. If your graph has interrupts for
approval (`HumanInTheLoopMiddleware`), `people.run` runs it to its end and asks at each of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from ..consent import Consents
from ..errors import NotAccepted, WrongCall
from ..output import Output
from ..session import AsyncSession
from .gate import Gate, denial


class LangChain:
    """What people hear and answer of one run of an agent."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self.middleware = ToolsMiddleware(self.gate)
        """For `create_agent(..., middleware=[...])`. The innermost one, so that it sees the final arguments."""
        self.callbacks = TextCallbacks(session)
        """For `config={"callbacks": [...]}`."""

    async def run(self, agent: Any, input: Any, config: dict[str, Any] | None = None) -> Any:
        """Runs an agent to its end, and asks the person at every interrupt for approval."""
        own = dict(config or {})
        own["callbacks"] = [*(own.get("callbacks") or []), self.callbacks]
        while True:
            result: Any = None
            interrupts: dict[str, Any] = {}
            # The mode `messages` is what makes models stream.
            async for mode, chunk in agent.astream(input, own, stream_mode=["messages", "values"]):
                if mode == "values":
                    result = chunk
                    interrupts |= {it.id: it.value for it in chunk.get("__interrupt__", ())}
            if not interrupts:
                return result
            resume: dict[str, Any] = {}
            for id, value in interrupts.items():
                resume[id] = {"decisions": [await self._decide(it) for it in value["action_requests"]]}
            input = Command(resume=resume)

    async def _decide(self, request: Any) -> dict[str, str]:
        try:
            (await self.gate.ask(request["name"], request["args"])).or_raise()
        except (NotAccepted, WrongCall) as error:
            return {"type": "reject", "message": denial(error)}
        return {"type": "approve"}


class ToolsMiddleware(AgentMiddleware):
    """Announces every tool, and asks before those that need consent. The one place that no tool gets past."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Runs the tool with the arguments that were consented to, or tells the model that it was denied."""
        call = request.tool_call
        try:
            async with self._gate.run(call["name"], call["args"]) as tool:
                result = await handler(request.override(tool_call={**call, "args": tool.args}))
                if getattr(result, "status", None) == "error":
                    tool.fail(str(result.content))
                return result
        except (NotAccepted, WrongCall) as error:
            return ToolMessage(denial(error), name=call["name"], tool_call_id=call["id"], status="error")


class TextCallbacks(AsyncCallbackHandler):
    """Says what the model writes. Needs a model that streams; what came at once is said at its end."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._outputs: dict[UUID, Output] = {}

    async def on_llm_new_token(self, token: Any, *, run_id: UUID, **_more: Any) -> None:
        """A token."""
        text = token if isinstance(token, str) else "".join(
            block if isinstance(block, str) else block.get("text", "") for block in token
        )
        if text:
            self._outputs.setdefault(run_id, self._outputs.get(run_id) or self._session.output()).write(text)

    async def on_llm_end(self, response: Any, *, run_id: UUID, **_more: Any) -> None:
        """The model has finished."""
        output = self._outputs.pop(run_id, None)
        if output is not None:
            output.close()
            return
        text = "".join(it.text or "" for its in response.generations for it in its)
        if text.strip():
            self._session.say(text)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **_more: Any) -> None:
        """The model failed. What it wrote until then is said; the session says the error if it ends with it."""
        output = self._outputs.pop(run_id, None)
        if output is not None:
            output.close()
