"""Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, RetryPromptPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

import aaep
from aaep.adapters.pydantic_ai import PydanticAI

from .scene import ARGS, CLOSING, NEEDS, PROMPT, TOKENS, Scene


class Gate(Scene):
    is_marked = False

    async def play(self, session: aaep.AsyncSession) -> None:
        people = PydanticAI(session, NEEDS)

        async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            parts = [part for it in messages if isinstance(it, ModelRequest) for part in it.parts]
            results = [part for part in parts if isinstance(part, (ToolReturnPart, RetryPromptPart))]
            self.told.extend(str(part.content) for part in results)
            for token in CLOSING if results else TOKENS:
                yield token
            if not results:
                yield {1: DeltaToolCall(name="delete_folder", json_args=json.dumps(ARGS), tool_call_id="call_1")}

        agent = Agent(FunctionModel(stream_function=model), capabilities=[people.hooks])

        @agent.tool_plain(requires_approval=self.is_marked)
        def delete_folder(path: str) -> str:
            """Delete a folder."""
            return self.delete(path)

        await agent.run(PROMPT)


class OwnApproval(Gate):
    is_marked = True
