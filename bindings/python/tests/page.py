"""The programs of docs/agents.md, each run unchanged as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from .support import PATIENCE, Person, RealHub

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
SUBSCRIBERS = PAGE.with_name("subscribers.md")
HERE = Path(__file__).parents[1]


def programs(heading: str, page: Path = PAGE) -> list[str]:
    """The programs in Python under a heading, in their order."""
    section = page.read_text("utf-8").split(f"\n{heading}\n")[1].split("\n#")[0]
    return [block.split("\n```")[0] for block in section.split("\n```py\n")[1:]]


def start(hub: RealHub, program: str, my_agent: str = "") -> subprocess.Popen[str]:
    """Starts a program, with this module `my_agent` beside it."""
    folder = tempfile.mkdtemp(prefix="aaep-page-", dir=hub.folder)
    Path(folder, "my_agent.py").write_text(my_agent)
    path = os.pathsep.join([str(HERE / "src"), str(HERE), folder])
    environment = {**os.environ, "PYTHONPATH": path, "AAEP_HUB": hub.url, "PYTHONUNBUFFERED": "1"}
    environment.pop("AAEP_TOKEN", None)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )


def run(hub: RealHub, person: Person, program: str, decision: bool, my_agent: str = "") -> str:
    """Runs a program to its end, with a person who decides. Gives what it printed."""
    person.will(decision)
    child = start(hub, program, my_agent)
    stop = threading.Timer(2 * PATIENCE, child.kill)
    stop.start()
    try:
        printed, _ = child.communicate()
    finally:
        stop.cancel()
    assert child.returncode == 0, printed
    return printed
