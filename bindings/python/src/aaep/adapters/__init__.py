"""One module for each framework. Each needs its framework, and is imported only when you import it.

`aaep.adapters.langchain`, `openai_agents`, `anthropic`, `claude_agent`, `pydantic_ai`, `agent_framework`, `mcp`.
"""
