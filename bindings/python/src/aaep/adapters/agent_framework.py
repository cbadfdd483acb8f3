"""Microsoft Agent Framework: text in sentences, tools, approval.

    async with hub.session("Tidies up.") as session:
        people = AgentFramework(session, {"delete_folder": NeedsConsent("Delete {path}.", "It is gone for good.")})
        agent = Agent(client=client, tools=[delete_folder], middleware=[people.middleware])
        response = await people.run(agent, "Delete the build folder.")

Tools with `approval_mode="always_require"` are asked about and rejected in the framework's own way, whose words to the
model are its own. The middleware asks before every other tool that needs consent; put it last, next to the tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_framework import FunctionInvocationContext, FunctionMiddleware, Message

from ..consent import Consents
from ..errors import ArgumentsChanged, NotAccepted, WrongCall
from ..outcome import Outcome
from ..session import AsyncSession
from .gate import Gate, denial, same_json


class AgentFramework:
    """What people hear and answer of the runs of an agent."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.gate = Gate(session, consents)
        self.middleware = ToolsMiddleware(self.gate)
        """For `Agent(..., middleware=[...])`."""

    async def run(self, agent: Any, messages: Any, *, session: Any = None, **more: Any) -> Any:
        """Runs an agent to its end, streamed, and asks the person about every approval. Gives the last response."""
        # The framework finds the call that was approved in the history of its own session.
        own = session or agent.create_session()
        while True:
            stream = agent.run(messages, stream=True, session=own, **more)
            with self.gate.session.output() as output:
                async for update in stream:
                    for content in update.contents:
                        if content.type == "text" and content.text:
                            output.write(content.text)
                        elif content.type == "function_call":
                            output.flush()
            response = await stream.get_final_response()
            requests = response.user_input_requests
            if not requests:
                return response
            messages = [Message("user", [await self._decide(it) for it in requests])]

    async def _decide(self, request: Any) -> Any:
        call = request.function_call
        try:
            outcome = await self.gate.ask(call.name, call.arguments)
        except WrongCall:
            return request.to_function_approval_response(False)
        return request.to_function_approval_response(bool(outcome))


class ToolsMiddleware(FunctionMiddleware):
    """Announces every tool, and asks before those that need consent and were not approved."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Runs the tool with the arguments that were consented to, or gives the model its denial as the result."""
        try:
            async with self._gate.run(context.function.name, _args(context)) as tool:
                if not same_json(_args(context), tool.args):
                    raise ArgumentsChanged(Outcome("refused", "kit"), "The arguments changed, so it was not done.")
                await call_next()
        except (NotAccepted, WrongCall) as error:
            context.result = denial(error)


def _args(context: FunctionInvocationContext) -> Mapping[str, Any]:
    args = context.arguments
    return args if isinstance(args, Mapping) else args.model_dump()
