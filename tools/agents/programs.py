"""The agents: how each is set up without a network, and how it is started."""

import json

from machine import NODE, PACKAGES

COMMAND = "rm -rf build && echo removed >> removals.txt"


class Agent:
    """An agent that people use."""

    id = name = package = tool = ""

    def version(self):
        return json.loads((PACKAGES / self.package / "package.json").read_text(encoding="utf-8"))["version"]

    def acp_version(self):
        """The version of what speaks the Agent Client Protocol: the agent, or a program that starts it."""
        path = PACKAGES / getattr(self, "acp_package", self.package) / "package.json"
        return json.loads(path.read_text(encoding="utf-8"))["version"]

    def requests(self):
        """What the person types, and what the model then wants to run."""
        return {self.prompt(): (self.tool, self.arguments())}

    def prompt(self):
        return f"tidy up the project of {self.id}"

    def acp_prompt(self):
        return self.prompt()

    def arguments(self):
        return {"command": COMMAND, "description": "Look around"}

    def node(self, path, *words):
        return [NODE, PACKAGES / path, *words]

    def environment(self, _scene):
        return {}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")


class ClaudeCode(Agent):
    id, name, package, tool = "claude-code", "Claude Code", "@anthropic-ai/claude-code", "Bash"
    program = PACKAGES / "@anthropic-ai/claude-code-linux-x64/claude"
    acp_package = "@agentclientprotocol/claude-agent-acp"
    READY, DIALOG = "mode on|for shortcuts", "Do you want to proceed"
    QUESTION, HELPER = "ask me something in claude-code", "let a helper count in claude-code"
    KEY = "sk-ant-api03-made-up-key-for-a-model-that-is-here"

    def set_up(self, scene):
        trusted = {str(scene.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
        write(scene.home / ".claude.json",
              {"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted,
               "customApiKeyResponses": {"approved": [self.KEY[-20:]], "rejected": []}})
        (scene.home / ".claude").mkdir()

    def requests(self):
        options = [{"label": "Blue", "description": "Like the sky"}, {"label": "Green", "description": "Like grass"}]
        asked = {"question": "Which colour shall the page have?", "header": "Colour", "multiSelect": False,
                 "options": options}
        helper = {"description": "Count the pages", "prompt": "count all pages for the helper of claude-code",
                  "subagent_type": "general-purpose"}
        return {**super().requests(), self.QUESTION: ("AskUserQuestion", {"questions": [asked]}),
                self.HELPER: ("Agent", helper)}

    def environment(self, scene):
        return {"ANTHROPIC_BASE_URL": scene.model.origin, "ANTHROPIC_API_KEY": self.KEY, "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_EXECUTABLE": str(self.program)}

    def headless(self, *words, mode="default"):
        return [self.program, "-p", self.prompt(), "--permission-mode", mode, *words]

    def terminal(self, *words):
        return [self.program, *words]

    def acp(self):
        return self.node(f"{self.acp_package}/dist/index.js")


class Codex(Agent):
    id, name, package, tool = "codex", "Codex", "@openai/codex", "exec_command"
    acp_package = "@agentclientprotocol/codex-acp"

    def requests(self):
        alone = {"cmd": "find build -delete && echo removed >> removals.txt"}
        # Where it asks, it asks for what wants to leave its sandbox.
        asks = {**alone, "sandbox_permissions": "require_escalated", "justification": "Look around"}
        # Codex itself refuses rm with -f where it asks nobody.
        return {self.prompt(): (self.tool, alone), self.acp_prompt(): (self.tool, asks)}

    def acp_prompt(self):
        return "please clean up in codex"

    def set_up(self, scene):
        write(scene.home / ".codex/config.toml", f"""
model = "gpt-5.2-codex"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{scene.model.origin}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
[projects."{scene.project}"]
trust_level = "trusted"
""")

    def environment(self, scene):
        return {"MOCK_KEY": "made-up", "CODEX_HOME": str(scene.home / ".codex")}

    def headless(self, *words):
        return self.node("@openai/codex/bin/codex.js", "exec", "--skip-git-repo-check",
                         "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", *words,
                         self.prompt())

    def acp(self):
        return self.node(f"{self.acp_package}/dist/index.js")


class GeminiCli(Agent):
    id, name, package, tool = "gemini-cli", "Gemini CLI", "@google/gemini-cli", "run_shell_command"
    READY, DIALOG = "Type your message", "Allow execution of"

    def set_up(self, scene):
        write(scene.home / ".gemini/settings.json",
              {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False},
               "privacy": {"usageStatisticsEnabled": False}, "ui": {"hideTips": True}})

    def environment(self, scene):
        return {"GOOGLE_GEMINI_BASE_URL": scene.model.origin, "GEMINI_API_KEY": "made-up",
                "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def program(self, *words):
        # The model that it would choose by itself first asks another one which to choose.
        return [PACKAGES / ".bin/gemini", "-m", "gemini-2.5-flash", *words]

    def headless(self, *words):
        return self.program("--approval-mode", "yolo", "-p", self.prompt(), *words)

    def terminal(self, *words):
        return self.program(*words)

    def acp(self):
        return self.program("--acp")


class QwenCode(Agent):
    id, name, package, tool = "qwen-code", "Qwen Code", "@qwen-code/qwen-code", "run_shell_command"
    READY, DIALOG = "Type your message", "Yes, allow once"

    def arguments(self):
        return {**super().arguments(), "is_background": False}

    def set_up(self, scene):
        write(scene.home / ".qwen/settings.json",
              {"security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": True},
               "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}})

    def environment(self, scene):
        return {"OPENAI_BASE_URL": f"{scene.model.origin}/v1", "OPENAI_API_KEY": "made-up", "OPENAI_MODEL": "mock-1"}

    def program(self, *words):
        return [PACKAGES / ".bin/qwen", *words]

    def headless(self, *words):
        return self.program(*words, "--approval-mode", "yolo", "-p", self.prompt())

    def terminal(self, *words):
        return self.program(*words)

    def acp(self):
        return self.program("--acp")
