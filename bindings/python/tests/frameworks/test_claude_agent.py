"""Claude Agent SDK, with the Claude Code that it brings."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

import aaep
from aaep.adapters.claude_agent import ClaudeAgent

from .fake_anthropic import fake_anthropic
from .scene import NEEDS, PROMPT, Scene

NAME = "mcp__files__delete_folder"


class OwnClaude(Scene):
    tool_name = NAME

    async def play(self, session: aaep.AsyncSession) -> None:
        people = ClaudeAgent(session, {NAME: NEEDS["delete_folder"]})

        @tool("delete_folder", "Delete a folder.", {"path": str})
        async def delete_folder(args: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": self.delete(args["path"])}]}

        with fake_anthropic(self.told, NAME) as url, tempfile.TemporaryDirectory() as folder:
            own = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": folder, "CLAUDE_CONFIG_DIR": folder,
                   "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
            server = create_sdk_mcp_server("files", tools=[delete_folder])
            options = ClaudeAgentOptions(
                mcp_servers={"files": server}, tools=[], setting_sources=[], cwd=folder, permission_mode="default",
                env={**os.environ, **own}, model="fake",
            )
            await people.run(PROMPT, options)
