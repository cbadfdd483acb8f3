"""Anthropic SDK: the text of a stream in sentences, and the tools of its tool runner.

    async with hub.session("Tidies up.") as session:
        people = Anthropic(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        runner = client.beta.messages.tool_runner(..., tools=people.tools([delete_folder]), stream=True)
        message = await people.run(runner)

For a stream without tools: `async for text in session.stream(stream.text_stream)`. A denied tool gives the model a tool
result with `is_error`, as the SDK does for every tool that raises `ToolError`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from anthropic.lib.tools import ToolError

from ..consent import Consents
from ..errors import NotAccepted, WrongCall
from ..session import AsyncSession
from .gate import Gate, denial


class Anthropic:
    """What people hear and answer of the runs of a model."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)

    def tools(self, tools: Iterable[Any]) -> list[Any]:
        """The same async tools, announced when they run, and asked about where they need consent."""
        return [self._guarded(it) if hasattr(it, "call") else it for it in tools]

    def _guarded(self, tool: Any) -> Any:
        call = tool.call

        async def run(input: object) -> Any:
            try:
                async with self.gate.run(tool.name, input) as running:
                    return await call(running.args)
            except (NotAccepted, WrongCall) as error:
                raise ToolError(denial(error)) from error

        guarded = copy.copy(tool)
        guarded.call = run
        return guarded

    async def run(self, runner: Any) -> Any:
        """Runs a streaming tool runner to its end. Gives the last message."""
        message: Any = None
        async for stream in runner:
            message = await self.say(stream)
        return message

    async def say(self, stream: Any) -> Any:
        """Says the text of one stream. Gives its message."""
        with self.gate.session.output() as output:
            async for event in stream:
                if event.type == "text":
                    output.write(event.text)
        return await stream.get_final_message()
