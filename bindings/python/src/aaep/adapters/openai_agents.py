"""OpenAI Agents SDK: text in sentences, tools, handoffs, approval.

    async with hub.session("Tidies up.") as session:
        people = OpenAIAgents(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        agent = Agent(name="Cleaner", tools=people.tools([delete_folder]))
        result = await people.run(agent, "Delete the build folder.")

Tools that need consent, and all with `needs_approval=True`, are asked about and then approved or rejected in the SDK's
own way, so that the model hears of the rejection. A tool that needs consent and did not go through `people.tools` ends
the run before it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from agents import FunctionTool, RunHooks, Runner, default_tool_error_function

from ..consent import Consents
from ..errors import AaepError, NotAccepted, WrongCall
from ..outcome import Outcome
from ..session import AsyncSession
from ..tools import Tool
from .gate import Gate, denial


class OpenAIAgents:
    """What people hear and answer of the runs of an agent."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self.hooks = ToolHooks(self.gate)
        """For `Runner.run(..., hooks=...)`, if you do not use `run`."""

    def tools(self, tools: Iterable[Any]) -> list[Any]:
        """The same tools. Those that need consent are marked for the SDK's own approval."""
        marked: list[Any] = []
        for tool in tools:
            needs = isinstance(tool, FunctionTool) and self.gate.needs(tool.name)
            marked.append(replace(tool, needs_approval=True) if needs else tool)
        return marked

    async def run(self, agent: Any, input: Any, **more: Any) -> Any:
        """Runs an agent to its end, streamed, and asks the person at every interruption. Gives the last result."""
        while True:
            result = Runner.run_streamed(agent, input, hooks=self.hooks, **more)
            try:
                await self._say(result)
            except BaseException as error:
                # The SDK calls no hook for a tool that raises.
                await self.hooks.end_all(error)
                if isinstance(error.__cause__, AaepError):
                    raise error.__cause__ from error
                raise
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

    async def _say(self, result: Any) -> None:
        output = self.gate.session.output()
        try:
            async for event in result.stream_events():
                if event.type != "raw_response_event":
                    continue
                if event.data.type == "response.output_text.delta":
                    output.write(event.data.delta)
                elif event.data.type == "response.completed":
                    output.close()
                    output = self.gate.session.output()
        finally:
            output.close()


class ToolHooks(RunHooks[Any]):
    """Announces tools and handoffs. An exception at the start of a tool keeps it from running."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._running: dict[str, tuple[AbstractAsyncContextManager[Tool], Tool]] = {}

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to run."""
        args = getattr(context, "tool_arguments", None)
        if self._gate.needs(tool.name) and not self._gate.has_given(tool.name, args):
            raise NotAccepted(Outcome("refused", "kit"), f"{tool.name} needs consent. Pass it through people.tools().")
        block = self._gate.run(tool.name, args)
        self._running[_call_of(context, tool)] = (block, await block.__aenter__())

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has run."""
        block, running = self._running.pop(_call_of(context, tool), (None, None))
        if block is None or running is None:
            return
        # The SDK hides what went wrong, unless the tool has a failure_error_function of its own.
        if result == default_tool_error_function(context, Exception()):
            running.fail(str(result))
        await block.__aexit__(None, None, None)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Another agent goes on."""
        self._gate.session.state("handing_off", f"{to_agent.name} goes on.")

    async def end_all(self, error: BaseException) -> None:
        """Ends what still runs, because the run has ended with this."""
        cause = error.__cause__ or error
        while self._running:
            _, (_, running) = self._running.popitem()
            running.end(cause)


def _call_of(context: Any, tool: Any) -> str:
    return str(getattr(context, "tool_call_id", tool.name))
