"""OpenAI Agents SDK, with its own approval, and with a tool that was not marked for approval."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Usage, UserError, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

import aaep
from aaep.adapters.openai_agents import OpenAIAgents

from .scene import ARGS, CLOSING, NEEDS, PROMPT, TOKENS, Scene

set_tracing_disabled(True)


class FakeModel(Model):
    """Says the text, calls the tool, and closes."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    async def get_response(self, *args: Any, **more: Any) -> ModelResponse:
        return ModelResponse(output=[], usage=Usage(), response_id=None)

    async def stream_response(self, system: Any, input: Any, *args: Any, **more: Any) -> AsyncIterator[Any]:
        results = [it for it in input if isinstance(it, dict) and it.get("type") == "function_call_output"]
        self._told.extend(str(it["output"]) for it in results)
        tokens = CLOSING if results else TOKENS
        for at, token in enumerate(tokens):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", delta=token, content_index=0, item_id="m", output_index=0,
                sequence_number=at, logprobs=[],
            )
        text = ResponseOutputText(type="output_text", text="".join(tokens), annotations=[])
        output: list[Any] = [
            ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        ]
        if not results:
            call = {"type": "function_call", "call_id": "call_1", "name": "delete_folder", "id": "f"}
            output.append(ResponseFunctionToolCall.model_validate({**call, "arguments": json.dumps(ARGS)}))
        response = Response(
            id="r", created_at=0, model="fake", object="response", output=output, parallel_tool_calls=False,
            tool_choice="auto", tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=99)


class OwnApproval(Scene):
    async def play(self, session: aaep.AsyncSession) -> None:
        people = OpenAIAgents(session, NEEDS)
        agent = Agent(name="Cleaner", tools=people.tools([self.tool()]), model=FakeModel(self.told))
        try:
            await people.run(agent, PROMPT)
        except UserError as error:
            # The SDK wraps what a tool raises.
            raise error.__cause__ or error from None

    def tool(self) -> Any:
        async def delete_folder(path: str) -> str:
            """Delete a folder."""
            return self.delete(path)

        return function_tool(delete_folder, failure_error_function=None)

    def test_a_tool_that_was_not_marked_ends_the_run_before_it_runs(self) -> None:
        async def play(session: aaep.AsyncSession) -> None:
            people = OpenAIAgents(session, NEEDS)
            await people.run(Agent(name="Cleaner", tools=[self.tool()], model=FakeModel(self.told)), PROMPT)

        self.play = play
        with self.assertRaises(aaep.NotAccepted):
            self.run_scene()
        self.assertEqual(self.ran, [])

    def test_a_tool_that_needs_no_consent_runs_and_its_hidden_failure_is_heard(self) -> None:
        async def play(session: aaep.AsyncSession) -> None:
            @function_tool
            async def delete_folder(path: str) -> str:
                """Delete a folder."""
                return self.delete(path)

            await OpenAIAgents(session).run(
                Agent(name="Cleaner", tools=[delete_folder], model=FakeModel(self.told)), PROMPT
            )

        self.play, self.fails = play, True
        completed = [event for event in self.run_scene() if event["type"].endswith("tool.completed")]
        self.assertEqual([event["status"] for event in completed], ["error"])
