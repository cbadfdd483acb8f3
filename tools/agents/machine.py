"""What a try needs: a hub, a person who listens and answers, a model that lies, and a terminal."""

import contextlib
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

AAEP = os.environ["AAEP"]
PACKAGES = Path(os.environ["AGENT_PACKAGES"]) / "node_modules"
NODE = Path(os.environ["AGENT_NODE"])
PATIENCE = 60
CLAIM = "Done. The build folder is gone."
NO_HUB = "http://127.0.0.1:9"


class CaseFailure(Exception):
    """Something was not as it has to be."""


def expect(is_so, what):
    if not is_so:
        raise CaseFailure(what)


class Process:
    """A program, ended with the block, and all that it said."""

    def __init__(self, words, env, folder=None, typed=False):
        self.process = subprocess.Popen([str(it) for it in words], env=env, cwd=folder, text=True, bufsize=1,
                                        errors="replace", stdin=subprocess.PIPE if typed else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.lines, self.said, self.place = queue.Queue(), [], 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait(PATIENCE)

    def _take(self, seconds):
        """Takes what it says within this time. False if it ended."""
        with contextlib.suppress(queue.Empty):
            line = self.lines.get(timeout=seconds)
            if line is None:
                self.lines.put(None)
                return False
            self.said.append(line)
        return True

    def until(self, pattern, seconds=PATIENCE):
        """Waits for a line that was not waited for before."""
        end = time.monotonic() + seconds
        goes_on = True
        while True:
            while self.place < len(self.said):
                self.place += 1
                if found := re.search(pattern, self.said[self.place - 1]):
                    return found
            if not goes_on or time.monotonic() > end:
                raise CaseFailure(f"nothing like {pattern!r} was said, but:\n      " + "\n      ".join(self.said[-40:]))
            goes_on = self._take(0.2)

    def all_said(self):
        """All that it said until now."""
        while not self.lines.empty() and self._take(0):
            pass
        return "\n".join(self.said)

    def finish(self, seconds=PATIENCE):
        """Waits for its end, and gives all that it said."""
        end = time.monotonic() + seconds
        while self._take(0.2):
            if time.monotonic() > end:
                raise CaseFailure("it did not end, and said:\n      " + "\n      ".join(self.said[-40:]))
        self.process.wait(PATIENCE)
        return "\n".join(self.said)

    def type(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


def own_environment(home, hub):
    """For programs that know nothing of this machine's agents, hubs and people, and of no network."""
    kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
    own = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"]
    programs = [str(NODE.parent), str(PACKAGES / ".bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    return {**kept, **{name: str(home) for name in own}, "PATH": ":".join(programs), "AAEP_HUB": hub, "SHELL": "/bin/sh",
            "NO_PROXY": "127.0.0.1,localhost", "CI": ""}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", int(os.environ.get("AGENT_PORT", "0"))))
        return free.getsockname()[1]


class Model(Process):
    """A model without a network. It wants to run one command, and then claims that it is done, whatever happened."""

    def __init__(self, folder, agents):
        fixtures = []
        for agent in agents:
            for request, (tool, arguments) in agent.requests().items():
                call = [{"type": "text", "text": "I remove the build folder now. "},
                        {"type": "toolCall", "id": f"call_{agent.id}_{len(fixtures)}".replace("-", "_"), "name": tool,
                         "arguments": arguments}]
                fixtures.append({"match": {"userMessage": request, "hasToolResult": False},
                                 "response": {"blocks": call}})
                fixtures.append({"match": {"userMessage": request, "hasToolResult": True},
                                 "response": {"content": CLAIM}})
        fixtures.append({"match": {}, "response": {"content": "All right."}})
        path = Path(folder) / "model.json"
        path.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        env = own_environment(folder, NO_HUB)
        super().__init__([NODE, PACKAGES / "@copilotkit/aimock/dist/cli.js", "-p", self.port, "-f", path], env)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise CaseFailure("the model does not start: " + self.all_said())


class Scene:
    """A home folder, a project with a build folder, a hub, and a person who listens."""

    def __init__(self, model, with_hub=True):
        self.model, self.with_hub = model, with_hub
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="aaep-agents-",
                                                                          ignore_cleanup_errors=True)))
        self.home, self.project = folder / "home", folder / "work" / "shop"
        for made in (self.home, self.project / "build"):
            made.mkdir(parents=True)
        (self.project / "build" / "page.html").write_text("built\n", encoding="utf-8")
        (self.home / "aaep").mkdir()
        self.origin = NO_HUB
        self.env = own_environment(self.home, NO_HUB)
        if self.with_hub:
            words = [AAEP, "serve", "--socket", "none", "--bind", "127.0.0.1:0"]
            hub = self.stack.enter_context(Process(words, self.env))
            self.origin = hub.until(r"^Listening on (http\S+?)/?[.]?$")[1]
            self.env = own_environment(self.home, self.origin)
            self.person = self.stack.enter_context(Process([AAEP, "listen"], self.env, typed=True))
            self.person.until("[Cc]onnected|[Ll]istening|hub")
        return self

    def __exit__(self, *why):
        self.stack.__exit__(*why)

    def aaep(self, *words):
        done = subprocess.run([AAEP, *words], env=self.env, text=True, capture_output=True, timeout=PATIENCE)
        expect(done.returncode == 0, f"aaep {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def run(self, words, env=None):
        """A program in the project."""
        return self.stack.enter_context(Process(words, {**self.env, **(env or {})}, self.project))

    def answer(self, word):
        """The person hears the question to its end, and answers it."""
        self.person.until("Yes or no")
        time.sleep(1)
        self.person.type(f"1 {word}")

    def has_build(self):
        return (self.project / "build" / "page.html").exists()

    def times_done(self):
        log = self.project / "removals.txt"
        return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0

    def never_heard(self, pattern):
        said = self.person.all_said()
        expect(not re.search(pattern, said), f"{pattern!r} was said:\n{said}")

    def wait_for(self, is_so, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not is_so():
            expect(time.monotonic() < end, what)
            time.sleep(0.1)


class Terminal:
    """A terminal in which an agent runs, with its keys and its screen."""

    def __init__(self, scene, words, env=None):
        self.scene, self.words = scene, [str(it) for it in words]
        self.env = {**scene.env, **(env or {}), "TERM": "xterm-256color"}
        # The path of a socket must be short.
        self.folder = tempfile.mkdtemp(prefix="aaep-t-", dir="/tmp")
        self.socket = f"{self.folder}/s"

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], env=self.env, text=True,
                              capture_output=True, timeout=PATIENCE).stdout

    def __enter__(self):
        words = ["env", "-i", *(f"{name}={value}" for name, value in self.env.items()), *self.words]
        self.tmux("new-session", "-d", "-x", "120", "-y", "50", "-c", str(self.scene.project), *words)
        return self

    def __exit__(self, *_why):
        self.tmux("kill-server")
        shutil.rmtree(self.folder, ignore_errors=True)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def write(self, text):
        self.tmux("send-keys", "-l", text)
        time.sleep(0.5)
        self.keys("Enter")

    def until(self, pattern, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not re.search(pattern, shown := self.screen()):
            if time.monotonic() > end:
                raise CaseFailure(f"the terminal does not show {pattern!r}, but:\n{shown}")
            time.sleep(0.2)
