"""Lets the official Python client use servers directly and through aaep mcp. The results must be the same.

The servers are a Python program each, or a program of Node. With the policy tell, nothing waits for a person, so every
difference is one that the proxy makes.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

WITHOUT_SERVER = [os.environ["AAEP"], "mcp", "--policy", "tell", "--hub", os.environ["AAEP_MCP_HUB"]]
PROXY = [*WITHOUT_SERVER, "--"]

# What differs from one run to the next, whoever is in between.
PASSING = ("timestamp", "lastModified", "createdAt", "lastUpdatedAt", "taskId", "uptime")


def plain(value):
    """The value without what differs from run to run."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items() if name not in PASSING}
    return [plain(it) for it in value] if isinstance(value, list) else value


async def answer_form(context, params):
    return ElicitResult(action="decline")


def transport(command, errors):
    """Streams to a server: one over HTTP if the command is an address."""
    if isinstance(command, str):
        return streamable_http_client(command)
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    return stdio_client(server, errlog=errors)


class Conversation:
    """One conversation with a server, and what came of each step."""

    def __init__(self, command):
        self.command = command
        self.results = []

    async def note(self, name, step):
        try:
            self.results.append((name, plain(await step)))
        except Exception as error:  # what the server refuses, it must refuse both times
            self.results.append((name, f"{type(error).__name__}: {error}"))

    async def hold(self, calls, is_stateless):
        progress = []

        async def on_progress(done, total, message):
            progress.append([done, total, message])

        with open(os.devnull, "w") as nowhere:
            async with transport(self.command, nowhere) as (read, write):
                async with ClientSession(read, write, elicitation_callback=answer_form) as session:
                    begin = session.discover() if is_stateless else session.initialize()
                    await self.note("begin", begin)
                    await self.note("tools", session.list_tools())
                    await self.note("resources", session.list_resources())
                    await self.note("prompts", session.list_prompts())
                    for name, arguments in calls:
                        call = session.call_tool(name, arguments, progress_callback=on_progress)
                        await self.note(f"{name} {json.dumps(arguments)}", call)
        self.results.append(("progress", progress))
        return self.results


async def compare(name, command, calls, is_stateless=False):
    direct = await Conversation(command).hold(calls, is_stateless)
    through = [*WITHOUT_SERVER, "--url", command] if isinstance(command, str) else PROXY + command
    proxied = await Conversation(through).hold(calls, is_stateless)
    different = [(one, other) for one, other in zip(direct, proxied, strict=True) if one != other]
    for one, other in different:
        print(f"{name}: {one[0]} differs.\n  directly: {one[1]}\n  through aaep: {other[1]}")
    worked = sum(isinstance(it, dict) for _, it in direct)
    print(f"{name}: {len(direct)} results, {worked} of them not errors, {len(different)} different.")
    if different or worked < 2:
        sys.exit(1)


def repository(folder):
    """A small repository, so that a tool for git has something to say."""
    git = ["git", "-C", folder, "-c", "user.name=Test", "-c", "user.email=test@example.org"]
    fixed = dict(os.environ, GIT_AUTHOR_DATE="2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", folder], check=True)
    Path(folder, "lamp.txt").write_text("on\n", encoding="utf-8")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "Switch the lamp on"], check=True, env=fixed)
    Path(folder, "lamp.txt").write_text("off\n", encoding="utf-8")


@contextmanager
def served(program):
    """The address of a server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, program, str(port)], **quiet) as process:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


async def latency(command, call, rounds):
    """How long calls take directly and through the proxy, in turns, in milliseconds."""
    taken = {"directly": [], "through aaep": []}
    through = [*WITHOUT_SERVER, "--url", command] if isinstance(command, str) else PROXY + command

    async def turn(name, whole):
        with open(os.devnull, "w") as nowhere:
            async with transport(whole, nowhere) as (read, write):
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    for at in range(rounds + 20):
                        began = time.perf_counter()
                        await session.call_tool(*call)
                        if at >= 20:
                            taken[name].append((time.perf_counter() - began) * 1000)

    for _ in range(3):
        await turn("directly", command)
        await turn("through aaep", through)
    found = {}
    for name, all_taken in taken.items():
        all_taken.sort()
        found[name] = [all_taken[int(len(all_taken) * part)] for part in (0.5, 0.99)]
        print(f"{name}: p50 {found[name][0]:.2f} ms, p99 {found[name][1]:.2f} ms, {len(all_taken)} calls")
    added = [found["through aaep"][at] - found["directly"][at] for at in (0, 1)]
    print(f"added by the proxy: p50 {added[0]:.2f} ms, p99 {added[1]:.2f} ms")


async def main():
    node, everything = os.environ["NODE"], os.environ["EVERYTHING"]
    python = [sys.executable, "-m"]
    await compare(
        "server-everything",
        [node, everything, "stdio"],
        [
            ("echo", {"message": "Hello, “world” \n 🌍"}),
            ("get-sum", {"a": 2, "b": 3}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-structured-content", {"location": "New York"}),
            ("get-resource-links", {"count": 3}),
            ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
            ("trigger-elicitation-request", {}),
            ("no-such-tool", {"a": [1, {"b": None}]}),
        ],
    )
    await compare(
        "mcp-server-time",
        [*python, "mcp_server_time", "--local-timezone", "Europe/Berlin"],
        [
            ("convert_time", {"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "UTC"}),
            ("convert_time", {"source_timezone": "Nowhere", "time": "16:30", "target_timezone": "UTC"}),
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        repository(folder)
        place = {"repo_path": folder}
        git = [
            ("git_status", place),
            ("git_diff_unstaged", place),
            ("git_log", place | {"max_count": 3}),
            ("git_show", place | {"revision": "HEAD"}),
            ("git_status", {"repo_path": "/nowhere"}),
        ]
        server = [*python, "mcp_server_git", "--repository", folder]
        await compare("mcp-server-git", server, git)
        await compare("mcp-server-git without a handshake", server, git, is_stateless=True)
    lamps = str(Path(__file__).with_name("lamps.py"))
    calls = [("add", {"a": 2, "b": 3}), ("count", {"steps": 5}), ("switch", {}), ("add", {"a": "x"})]
    await compare("a server in Python", [sys.executable, lamps], calls)
    await compare("a server in Python without a handshake", [sys.executable, lamps], calls, is_stateless=True)
    with served(lamps) as address:
        await compare("a server in Python over HTTP", address, calls)
        await compare("a server in Python over HTTP without a handshake", address, calls, is_stateless=True)
        print("\nserver-everything, over standard input and output:")
        await latency([node, everything, "stdio"], ("echo", {"message": "x"}), 1000)
        print("a server in Python, over HTTP:")
        await latency(address, ("add", {"a": 1, "b": 1}), 200)


asyncio.run(main())
