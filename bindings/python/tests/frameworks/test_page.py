"""The programs on the page for agent authors, each with its framework and a fake model as `my_agent`."""

from __future__ import annotations

import threading

from ..page import programs, run, start
from ..support import PATIENCE
from ..test_hub import WithHub

TOOL = '''
def delete_folder(path: str) -> str:
    """Delete a folder."""
    print("RAN", path)
    return f"deleted {path}"
'''
LANGCHAIN = "from tests.frameworks.test_langchain import FakeModel\nmodel = FakeModel(told=[])\n" + TOOL
OPENAI = (
    "from agents import function_tool\nfrom tests.frameworks.test_openai_agents import FakeModel\n"
    "model = FakeModel([])\n" + TOOL + "delete_folder = function_tool(delete_folder)\n"
)
SERVER = (
    "from tests.frameworks.fake_anthropic import fake_anthropic\n"
    "served = fake_anthropic([], TOOL_NAME)\nurl = served.__enter__()\n"
    # Its thread must end before the interpreter does.
    "import atexit\natexit.register(served.__exit__, None, None, None)\n"
)
ANTHROPIC = (
    "TOOL_NAME = 'delete_folder'\n" + SERVER + "from anthropic import AsyncAnthropic, beta_async_tool\n"
    "client = AsyncAnthropic(base_url=url, api_key='none')\n"
    + TOOL.replace("def ", "@beta_async_tool\nasync def ").replace(
        '"""Delete a folder."""', '"""Delete a folder.\n\n    Args:\n        path: the folder\n    """'
    )
)
CLAUDE = (
    "import os, tempfile\nTOOL_NAME = 'mcp__files__delete_folder'\n" + SERVER + '''
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool
folder = tempfile.mkdtemp()
own = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": folder, "CLAUDE_CONFIG_DIR": folder,
       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
@tool("delete_folder", "Delete a folder.", {"path": str})
async def delete_folder(args):
    print("RAN", args["path"])
    return {"content": [{"type": "text", "text": "deleted"}]}
options = ClaudeAgentOptions(mcp_servers={"files": create_sdk_mcp_server("files", tools=[delete_folder])}, tools=[],
                             setting_sources=[], cwd=folder, env={**os.environ, **own}, model="fake")
'''
)
PYDANTIC = '''
import json
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
async def stream(messages, info):
    if any(part.part_kind == "tool-return" for it in messages for part in it.parts):
        yield "That was all."
    else:
        yield "I will delete the folder. "
        yield {1: DeltaToolCall(name="delete_folder", json_args=json.dumps({"path": "/build"}), tool_call_id="call_1")}
model = FunctionModel(stream_function=stream)
''' + TOOL
AGENT_FRAMEWORK = (
    "from tests.frameworks.test_agent_framework import FakeClient\nclient = FakeClient()\nclient.told = []\n" + TOOL
)
MCP = (
    "from tests.frameworks.test_mcp import Table, server as make\nserver = make([], Table)\n"
)


class FrameworkPrograms(WithHub):
    def each(self, heading: str, my_agent: str) -> None:
        program = programs(heading)[0]
        for decision in (True, False):
            printed = run(self.hub, self.person, program, decision, my_agent)
            self.assertEqual(printed.count("RAN /build"), int(decision), printed)
            self.person.hears("output.streaming", lambda event: event["chunk"] == "That was all.")
            self.person.hears("session.completed")

    def test_langchain(self) -> None:
        self.each("### LangChain and LangGraph", LANGCHAIN)

    def test_openai_agents(self) -> None:
        self.each("### OpenAI Agents SDK", OPENAI)

    def test_anthropic(self) -> None:
        self.each("### Anthropic SDK", ANTHROPIC)

    def test_claude_agent(self) -> None:
        self.each("### Claude Agent SDK", CLAUDE)

    def test_pydantic_ai(self) -> None:
        self.each("### Pydantic AI", PYDANTIC)

    def test_agent_framework(self) -> None:
        self.each("### Microsoft Agent Framework", AGENT_FRAMEWORK)

    def test_mcp(self) -> None:
        def answer() -> None:
            self.person.next_ask().answer(4)
            self.person.next_ask().answer("inside")
            self.person.decides(True)

        threading.Thread(target=answer, daemon=True).start()
        printed, _ = start(self.hub, programs("### MCP servers")[0], MCP).communicate(timeout=2 * PATIENCE)
        self.assertIn("accept", printed)


del WithHub
