"""Anthropic SDK: the tool runner."""

from __future__ import annotations

from anthropic import AsyncAnthropic, beta_async_tool

import aaep
from aaep.adapters.anthropic import Anthropic

from .fake_anthropic import fake_anthropic
from .scene import NEEDS, PROMPT, Scene


class Runner(Scene):
    async def play(self, session: aaep.AsyncSession) -> None:
        people = Anthropic(session, NEEDS)

        @beta_async_tool
        async def delete_folder(path: str) -> str:
            """Delete a folder.

            Args:
                path: the folder
            """
            return self.delete(path)

        with fake_anthropic(self.told, "delete_folder") as url:
            runner = AsyncAnthropic(base_url=url, api_key="none").beta.messages.tool_runner(
                model="fake", max_tokens=99, messages=[{"role": "user", "content": PROMPT}], stream=True,
                tools=people.tools([delete_folder]),
            )
            await people.run(runner)
