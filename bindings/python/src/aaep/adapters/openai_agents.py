"""OpenAI Agents SDK: text in sentences, tools, handoffs, approval.

    async with hub.session("Tidies up.") as session:
        people = OpenAIAgents(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        result = await people.run(agent, "Delete the build folder.")

Tools with `needs_approval=True` are asked about and then approved or rejected in the SDK's own way, so that the model
hears of the rejection. A tool that needs consent here and has no `needs_approval` is stopped before it runs.
"""

from __future__ import annotations

import contextlib
from typing import Any

from agents import RunHooks, Runner

from ..consent import Consents
from ..errors import NotAccepted, WrongCall
from ..session import AsyncSession
from .gate import Gate, denial


class OpenAIAgents:
    """What people hear and answer of the runs of an agent."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self.hooks = ToolHooks(self.gate)
        """For `Runner.run(..., hooks=...)`, if you do not use `run`."""

    async def run(self, agent: Any, input: Any, **more: Any) -> Any:
        """Runs an agent to its end, streamed, and asks the person at every interruption. Gives the last result."""
        session = self.gate.session
        while True:
            result = Runner.run_streamed(agent, input, hooks=self.hooks, **more)
            with contextlib.closing(session.output()) as first:
                output = first
                async for event in result.stream_events():
                    if event.type == "raw_response_event":
                        if event.data.type == "response.output_text.delta":
                            output.write(event.data.delta)
                        elif event.data.type == "response.completed":
                            output.close()
                            output = session.output()
                output.close()
            if not result.interruptions:
                return result
            input = result.to_state()
            for item in result.interruptions:
                try:
                    (await self.gate.ask(item.name or "tool", item.arguments)).or_raise()
                except (NotAccepted, WrongCall) as error:
                    input.reject(item, rejection_message=denial(error))
                else:
                    input.approve(item)


class ToolHooks(RunHooks[Any]):
    """Announces tools and handoffs. An exception here keeps the tool from running."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._running: dict[str, Any] = {}

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to run."""
        block = self._gate.run(tool.name, getattr(context, "tool_arguments", None))
        await block.__aenter__()
        self._running[getattr(context, "tool_call_id", tool.name)] = block

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has run."""
        block = self._running.pop(getattr(context, "tool_call_id", tool.name), None)
        if block is not None:
            await block.__aexit__(None, None, None)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Another agent goes on."""
        self._gate.session.state("handing_off", f"{to_agent.name} goes on.")
