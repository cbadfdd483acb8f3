"""Microsoft Agent Framework."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

import aaep
from aaep.adapters.agent_framework import AgentFramework

from .scene import ARGS, CLOSING, NEEDS, PROMPT, TOKENS, Scene


class FakeClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Says the text, calls the tool, and closes."""

    told: Any = None

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Any:
        contents = [it for message in messages for it in message.contents]
        results = [it for it in contents if it.type == "function_result"]
        self.told.extend(str(it.result) for it in results)

        async def run() -> AsyncIterator[ChatResponseUpdate]:
            for token in CLOSING if results else TOKENS:
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(token)])
            if not results:
                call = Content.from_function_call("call_1", "delete_folder", arguments=json.dumps(ARGS))
                yield ChatResponseUpdate(role="assistant", contents=[call])

        return ResponseStream(run(), finalizer=ChatResponse.from_updates)


class Middleware(Scene):
    mode: Any = "never_require"

    async def play(self, session: aaep.AsyncSession) -> None:
        people = AgentFramework(session, NEEDS)

        @tool(approval_mode=self.mode)
        def delete_folder(path: str) -> str:
            """Delete a folder."""
            return self.delete(path)

        client = FakeClient()
        client.told = self.told
        agent = Agent(client=client, tools=[delete_folder], middleware=[people.middleware])
        await people.run(agent, PROMPT)


class OwnApproval(Middleware):
    mode = "always_require"
    # The framework tells the model in its own words.
    denied = "rejected by user"
