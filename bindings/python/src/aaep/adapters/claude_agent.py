"""Claude Agent SDK: text, tools, permission.

    async with hub.session("Tidies up.") as session:
        people = ClaudeAgent(session, {"Bash": NeedsConsent("Run {command}.", "It may be impossible to undo.")})
        result = await people.run("Delete the build folder.")

Every tool for which Claude asks for permission is asked about, whether or not it is named here; a denial is the SDK's
own. Tools that Claude's settings allow without asking are announced when they have run.

"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
)

from ..consent import Consents
from ..errors import NotAccepted, WrongCall
from ..session import AsyncSession
from ..tools import Tool
from .gate import Gate, denial


class ClaudeAgent:
    """What people hear and answer of one conversation with Claude."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self._running: dict[str, tuple[AbstractAsyncContextManager[Tool], Tool]] = {}

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options, with the permissions and the hooks of this adapter."""
        own = options or ClaudeAgentOptions()
        hooks: Any = {name: list(them) for name, them in (own.hooks or {}).items()}
        for name, hook in (("PostToolUse", self._ended), ("PostToolUseFailure", self._failed)):
            hooks.setdefault(name, []).append(HookMatcher(hooks=[hook]))
        return replace(own, can_use_tool=self.can_use_tool, hooks=hooks)

    async def run(self, prompt: str, options: ClaudeAgentOptions | None = None) -> ResultMessage | None:
        """Asks Claude, says what it writes, and gives the result."""
        async with ClaudeSDKClient(self.options(options)) as client:
            await client.query(prompt)
            result: ResultMessage | None = None
            async for message in self.say(client.receive_response()):
                if isinstance(message, ResultMessage):
                    result = message
            return result

    async def say(self, messages: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Passes every message on, and says its text."""
        async for message in messages:
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock) and block.text.strip():
                        self.gate.session.say(block.text)
            yield message

    async def can_use_tool(self, name: str, args: dict[str, Any], context: Any) -> Any:
        """Asks the person. For `ClaudeAgentOptions(can_use_tool=...)`; `options` sets it."""
        try:
            (await self.gate.ask(name, args)).or_raise()
            # Announced before Claude is told that it may run the tool.
            block = self.gate.run(name, args)
            tool = await block.__aenter__()
        except (NotAccepted, WrongCall) as error:
            return PermissionResultDeny(message=denial(error))
        self._running[str(getattr(context, "tool_use_id", None) or name)] = (block, tool)
        return PermissionResultAllow(updated_input=tool.args)

    async def _ended(self, input: Any, tool_use_id: str | None, context: Any) -> Any:
        return await self._end(input, tool_use_id, None)

    async def _failed(self, input: Any, tool_use_id: str | None, context: Any) -> Any:
        return await self._end(input, tool_use_id, str(input.get("error") or "It failed."))

    async def _end(self, input: Any, tool_use_id: str | None, error: str | None) -> Any:
        name = str(input.get("tool_name"))
        block, tool = self._running.pop(str(tool_use_id), None) or self._running.pop(name, None) or (None, None)
        if block is None or tool is None:
            # Claude's settings allowed it, so that nobody was asked. It is announced now.
            tool = self.gate.session.tool("_".join(name.split()), args=input.get("tool_input"))
            block = tool
            await tool.begin_async()
        if error is not None:
            tool.fail(error)
        await block.__aexit__(None, None, None)
        return {}
