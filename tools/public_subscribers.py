"""Runs each public subscriber against a hub, lets it accept and reject, and counts what the hub settled by that.

Once with an address that the person made for it, at a hub that trusts no program; once at `aaep demo --serve`; and
once as a stranger, whose answers must not count and who has to be told so.
"""

import contextlib
import http.server
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

AAEP, SUBSCRIBERS, PAGE = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
PATIENCE = 30
os.environ["AAEP"] = AAEP
sys.path.insert(0, str(Path(__file__).parent / "clients"))
from webdriver import Browser  # noqa: E402

# Its sentences set an alarm for what comes after them. Here, every wait has its own end.
signal.signal(signal.SIGALRM, signal.SIG_IGN)

# The add-on outside of NVDA, with its address set: it has that in its code. Lines of standard input are key presses.
NVDA = """
import logging, sys, time
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
from aaep_nvda_subscriber import globalPlugin
class Plugin(globalPlugin.GlobalPlugin):
    def _load_config(self):
        config = super()._load_config()
        config.__dict__["endpoints"] = [sys.argv[1]]
        return config
plugin = Plugin()
for line in sys.stdin:
    while plugin.handler._pending_reply_token is None:
        time.sleep(0.05)
    press = {"yes": plugin.script_accept_confirmation, "no": plugin.script_reject_confirmation}
    press[line.strip()](None)
"""


def lines_of(stream):
    """The lines of a stream as they come, in a queue that ends with None."""
    lines = queue.Queue()

    def read():
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


class Process:
    """A program that is ended with the block, and what it said."""

    def __init__(self, words, env, typed=False):
        self.process = subprocess.Popen(words, env=env, text=True, bufsize=1,
                                        stdin=subprocess.PIPE if typed else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines, self.said = lines_of(self.process.stdout), []

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        self.process.kill()
        self.process.wait(PATIENCE)

    def until(self, pattern):
        """Waits for a line, and gives what it matched."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                line = self.lines.get(timeout=0.2)
                if line is None:
                    break
                self.said.append(line)
                if found := re.search(pattern, line):
                    return found
        sys.exit("It did not say " + pattern + ", but:\n" + "\n".join(self.said))

    def type(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


def own_environment(folder):
    """For a program that knows nothing of the hubs, agents and people of this machine."""
    own = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR"]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AAEP")}
    return kept | {name: folder for name in own}


class Hub:
    """A hub of its own, as a person starts it or as `aaep demo --serve`."""

    def __init__(self, folder, words, config=""):
        self.env = own_environment(folder)
        (Path(folder) / "hub.toml").write_text(config, encoding="utf-8")
        self.process = Process([AAEP, *words, "--bind", "127.0.0.1:0"], self.env)
        self.origin = self.process.until(r"^Listening on (http\S+?)/?[.]?$")[1]

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.__exit__(*why)

    def address_for(self, name):
        made = subprocess.run([AAEP, "allow", name, "--address", "--hub", self.origin], text=True, check=True,
                              env=self.env, capture_output=True)
        return made.stdout.splitlines()[-1]

    def ask(self, question):
        """An agent asks. What came of it."""
        self.asks = getattr(self, "asks", 0) + 1
        words = [AAEP, "ask", question, "--agent", f"tester-{self.asks}", "--irreversible", "--risk", "high",
                 "--timeout", str(PATIENCE), "--json", "--hub", self.origin]
        return subprocess.Popen(words, env=self.env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)


def outcome(asking):
    """How a question ended, and by what."""
    said, complaints = asking.communicate(timeout=2 * PATIENCE)
    try:
        settled = json.loads(said.splitlines()[-1])
        return settled["outcome"], settled["decided_by"]
    except (IndexError, KeyError, ValueError):
        sys.exit(f"The question came to nothing: {said}{complaints}")


def python(folder, *words):
    return [sys.executable, "-u", *words], {**os.environ, "PYTHONPATH": str(SUBSCRIBERS / folder)}


@contextlib.contextmanager
def command_line(address):
    words, env = python("cli-debug", "-m", "aaep_cli_debug.main", "--endpoint", address, "--no-color")
    with Process(words, env, typed=True) as program:
        program.until("Connecting to")
        yield program, lambda decision: program.type("y" if decision == "accept" else "n")


@contextlib.contextmanager
def nvda(address):
    words, env = python("nvda-addon-prototype", "-c", NVDA, address)
    with Process(words, env, typed=True) as program:
        program.until("Connected to")
        yield program, lambda decision: program.type("yes" if decision == "accept" else "no")


@contextlib.contextmanager
def narrator(address, decision="accept"):
    words, env = python("narrator-bridge-prototype", "-m", "aaep_narrator_bridge.bridge", "--endpoint", address,
                        "--mock", f"--auto-{decision}")
    with Process(words, env) as program:
        program.until("Connected to AAEP producer")
        yield program, lambda _decision: None


class Window:
    """The page in a browser."""

    def __init__(self, browser, place):
        self.browser, self.place = browser, place

    @contextlib.contextmanager
    def __call__(self, address):
        self.browser.go_to(f"{self.place}/?endpoint={address}")
        self.browser.wait("return document.body.innerText.includes('connected')", "React listens.")
        yield self, self.decide
        self.browser.go_to("about:blank")

    def decide(self, decision):
        button = f".aaep-button-{decision}"
        self.browser.wait(f"return document.querySelector('{button}') !== null", "React asks the person.")
        self.browser.click(button)

    def until(self, words):
        self.browser.wait(f"return document.body.innerText.includes({json.dumps(words)})", "React says so.")


@contextlib.contextmanager
def page():
    """Where the page comes from."""
    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(PAGE))

        def log_message(self, *_ignored):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def answers(hub, name, listen, address, wanted):
    """Lets a program answer. How many of its answers the hub settled with."""
    counted = 0
    with listen(address) as (_program, decide):
        time.sleep(0.5)
        for decision in wanted:
            asking = hub.ask(f"{decision}, {name}?")
            decide(decision)
            came = outcome(asking)
            counted += came == (decision, "reply")
            print(f"  {name}: {decision} was settled as {came[0]} by {came[1]}.")
    return counted


@contextlib.contextmanager
def hub_without_trust(origin):
    """A hub as a person starts it, that knows where the page comes from."""
    config = f'[access]\nallowed_origins = ["{origin}"]\n'
    with tempfile.TemporaryDirectory(prefix="aaep-public-") as folder:
        words = ["serve", "--socket", "none", "--config", f"{folder}/hub.toml"]
        with Hub(folder, words, config) as hub:
            yield hub


def at_own_addresses(programs, origin):
    counted = 0
    with hub_without_trust(origin) as hub:
        for name, listen in programs.items():
            address = hub.address_for(name)
            if name == "narrator":
                # It decides by a flag, so it is run once for each decision.
                for decision in ["accept", "reject"]:
                    def decided(where, decision=decision):
                        return narrator(where, decision)
                    counted += answers(hub, name, decided, address, [decision])
            else:
                counted += answers(hub, name, listen, address, ["accept", "reject"])
    return counted


def as_strangers(programs, origin):
    """Told so first, and not asked."""
    with hub_without_trust(origin) as hub:
        for name, listen in programs.items():
            with listen(hub.origin) as (program, _decide):
                program.until("may listen, but not answer")
                came = outcome(hub.ask(f"Nobody, {name}?"))
                if came != ("reject", "no_listener"):
                    sys.exit(f"{name} was not allowed, and yet: {came}")
            print(f"  {name}: it is told so, and not asked.")


def at_the_demonstration(programs, origin):
    counted = 0
    for name, listen in programs.items():
        with tempfile.TemporaryDirectory(prefix="aaep-public-") as folder, \
                Hub(folder, ["demo", "--serve", "--ask-every", "5", "--origin", origin]) as hub, \
                listen(hub.origin) as (program, decide):
            if name != "narrator":
                if name != "react":
                    program.until("awaiting.confirmation|[Cc]onfirmation|Delete the record")
                decide("accept")
            program.until("The record is deleted")
            counted += 1
            print(f"  {name}: the agent of the demonstration did what was accepted.")
    return counted


def public_producer():
    """The other way round: `aaep listen` hears and answers a public producer that knows no handshake."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words, env = python("../producers/python-minimal", "-m", "aaep_minimal_producer.server", "--port", str(port))
    place = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="aaep-public-") as folder, Process(words, env) as producer:
        producer.until("GET    /healthz")
        reached = time.monotonic() + PATIENCE
        while time.monotonic() < reached:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        with Process([AAEP, "listen", "--hub", place], own_environment(folder), typed=True) as listening:
            listening.until("without a hub")
            begin = urllib.request.Request(f"{place}/sessions", json.dumps({"user_message": "Send an email."}).encode(),
                                           {"Content-Type": "application/json"})
            urllib.request.urlopen(begin, timeout=PATIENCE).close()
            listening.until("Yes or no")
            # It says which question is meant, so that nobody has to wait until it can have been read.
            time.sleep(1)
            listening.type("1 yes")
            listening.until("Email sent")
    print("  The public minimal producer: aaep listen heard its question, and it did what was accepted.")


def main():
    programs = {"command-line": command_line, "nvda": nvda, "narrator": narrator}
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(page()) if PAGE.is_dir() else "http://127.0.0.1:1"
        if PAGE.is_dir():
            programs["react"] = Window(stack.enter_context(Browser()), origin)
        print("Each at an address of its own, at a hub that trusts no program:")
        own = at_own_addresses(programs, origin)
        print("At such a hub, as strangers:")
        as_strangers(programs, origin)
        print("At aaep demo --serve, as it comes:")
        demonstrated = at_the_demonstration(programs, origin)
    print("The other way round:")
    public_producer()
    wanted = 2 * len(programs)
    print(f"Public subscribers: {own} of {wanted} answers were settled at their addresses, "
          f"{demonstrated} of {len(programs)} at the demonstration.")
    sys.exit(0 if own == wanted and demonstrated == len(programs) else 1)


main()
