"""Pydantic AI: text in sentences, tools, approval.

    async with hub.session("Tidies up.") as session:
        people = PydanticAI(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        agent = Agent(model, tools=[delete_folder], capabilities=[people.hooks])
        result = await agent.run("Delete the build folder.")

A denied tool comes back to the model as `ToolDenied`. Tools with `requires_approval=True` are asked about whether or
not they are named here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import DeferredToolResults, ToolDenied
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import PartDeltaEvent, PartEndEvent, PartStartEvent, TextPart, TextPartDelta

from ..consent import Consents
from ..errors import ArgumentsChanged, NotAccepted, WrongCall
from ..outcome import Outcome
from ..output import Output
from ..session import AsyncSession
from .gate import Gate, denial, same_json


class PydanticAI:
    """What people hear and answer of the runs of an agent."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self._output: Output | None = None
        self.hooks: Hooks[Any] = Hooks(
            event=self._event, prepare_tools=self._prepare, deferred_tool_calls=self._decide, tool_execute=self._execute
        )
        """For `Agent(..., capabilities=[...])`."""

    async def _prepare(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
        """Makes Pydantic AI itself defer the tools that need consent, so that a denial is its own."""
        return [it if self.gate.needs(it.name) is None else replace(it, kind="unapproved") for it in tool_defs]

    async def _decide(self, ctx: Any, *, requests: Any) -> DeferredToolResults | None:
        approvals: dict[str, Any] = {}
        for call in requests.approvals:
            try:
                (await self.gate.ask(call.tool_name, call.args)).or_raise()
            except (NotAccepted, WrongCall) as error:
                approvals[call.tool_call_id] = ToolDenied(denial(error))
            else:
                approvals[call.tool_call_id] = True
        return DeferredToolResults(approvals=approvals) if approvals else None

    async def _execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        async with self.gate.run(call.tool_name, call.args) as tool:
            # Validation may make richer types of the arguments, and fill in defaults, but nothing may differ.
            for name, value in args.items():
                if name in tool.args and not same_json(value, tool.args[name]):
                    raise ArgumentsChanged(Outcome("refused", "kit"), f"The argument {name} changed. It was not run.")
            return await handler(args)

    def _event(self, ctx: Any, event: Any) -> None:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            self._output = self.gate.session.output()
            if event.part.content:
                self._output.write(event.part.content)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta) and self._output:
            self._output.write(event.delta.content_delta)
        elif isinstance(event, PartEndEvent) and self._output:
            self._output.close()
            self._output = None
