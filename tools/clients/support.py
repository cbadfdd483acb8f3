"""What the clients share: a hub in a folder of its own, an agent beside it, and sentences about both.

Whatever happens, also a signal or the end of the time, the processes end and the folder is removed.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

AAEP = os.environ["AAEP"]
HERE = Path(__file__).parent
# Longer than anything takes here, so that what hangs fails and says where.
PATIENCE = 20
NEVER_SENT = "rpl_0123456789abcdef0123456789abcdef"
STAMP = "2020-01-01T00:00:00.000Z"


def check(holds, sentence, seen=None):
    """Says what was found, or ends everything and says what was seen in its place."""
    if not holds:
        shown = "" if seen is None else f" Seen: {ascii(seen)}"
        sys.exit(f"WRONG: this should hold: {sentence}{shown}")
    print(f"  {sentence}", flush=True)
    # Whatever is waited for next, also on a stream that only shows that it lives, comes soon or never.
    signal.alarm(2 * PATIENCE)


def run(main):
    """Runs a script. A signal, or too long a wait, is an exception, so that everything is cleaned up."""
    def stop(number, _frame):
        too_long = "WRONG: what should come after the last sentence did not come in time."
        sys.exit(too_long if number == signal.SIGALRM else "Stopped by a signal.")

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, stop)
    signal.alarm(2 * PATIENCE)
    main()


def end(process, number=signal.SIGTERM):
    """Ends a process of ours, at the latest when our patience is over, and gives its exit code."""
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
    return process.returncode


def lines_of(process):
    """The lines that a process prints, as they come, with an end to every wait."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


class Hub:
    """A hub on a free port."""

    def __init__(self, config=""):
        self.folder = Path(tempfile.mkdtemp(prefix="aaep-clients-"))
        (self.folder / "hub.toml").write_text(config)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("AAEP")}
        self.address = "127.0.0.1:0"
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_rest):
        if self.process:
            end(self.process, signal.SIGKILL)
        if kind:
            with contextlib.suppress(OSError):
                sys.stderr.write("The log of the hub:\n" + (self.folder / "log").read_text()[-5000:])
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Starts it, the second time on the same port and with the same store."""
        arguments = [AAEP, "serve", "--trust-local-programs", "--bind", self.address, "--config", self.folder / "hub.toml"]
        arguments += ["--store", self.folder / "store", "--tokens", self.folder / "tokens.toml"]
        arguments += ["--keys", self.folder / "keys", "--socket", self.folder / "hub.sock"]
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True,
                                            env=self.environment)
        try:
            said = lines_of(self.process).get(timeout=PATIENCE)
        except queue.Empty:
            said = None
        check(said and said.startswith("Listening on http://"), "The hub says where it listens.", said)
        self.url = said.split()[-1]
        self.address = self.url.removeprefix("http://")

    def stop(self):
        """Tells it to stop, and sees that it does so well."""
        code = end(self.process)
        check(code == 0, "The hub stops when it is told to, with exit code 0.", code)

    def kill(self):
        """Ends it without a warning."""
        end(self.process, signal.SIGKILL)

    def token(self, name, *scopes, hears=None):
        """A new token, perhaps one that hears a single agent."""
        arguments = [AAEP, "tokens", "new", "--json", "--name", name, "--for", "me", "--file", self.folder / "tokens.toml"]
        for scope in scopes:
            arguments += ["--scope", scope]
        if hears:
            arguments += ["--hears", hears]
        made = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(made.stdout)["secret"]


def hear_until(lines, wanted):
    """Waits for a line that contains this; all lines up to it."""
    heard = []
    while (line := lines.get(timeout=PATIENCE)) is not None:
        heard.append(line)
        if wanted in line:
            return heard
    check(False, f"The example says: {wanted}", heard)


def check_told(line):
    """Sees that a person is told what they decide on before they are asked for a yes."""
    lowered = line.lower()
    for wanted in ("delete 240 photos of 2019.", "they are gone for good.", "high", "risk", "it cannot be undone."):
        check(wanted in lowered, f"Before a yes the person is told: {wanted}", line)


class Agent:
    """The agent of agent.py, as a program of its own."""

    def __init__(self, hub, token=None):
        environment = {**hub.environment, "AAEP_HUB": hub.url}
        if token:
            environment["AAEP_TOKEN"] = token
        self.process = subprocess.Popen([sys.executable, HERE / "agent.py"], env=environment,
                                        stdout=subprocess.PIPE, text=True)
        self.lines = lines_of(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        end(self.process, signal.SIGKILL)

    def ends_with(self, outcome, decided_by):
        """Waits for the end, and sees that the agent was answered so and acted so."""
        code = self.process.wait(PATIENCE)
        said = []
        while (line := self.lines.get(timeout=PATIENCE)) is not None:
            said.append(line)
        wanted = f"The answer is {outcome}, decided by {decided_by}."
        check(said[-1:] == [wanted], f"The agent heard: {wanted}", said)
        check(code == (0 if outcome == "accept" else 1),
              "The agent did it." if outcome == "accept" else "The agent did nothing.", code)

    def still_waits(self):
        """Sees that the agent has no answer."""
        check(self.process.poll() is None, "The agent still waits.")


def request(**more):
    """A wish to listen and to answer, on the plainest terms."""
    return {
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "tried-client",
        "capabilities": {"supports_confirmation_reply": True, "supports_clarification_reply": True}, **more,
    }


def reply(subscription, token, decision):
    """An answer to a question."""
    return {"type": "confirmation.reply", "reply_token": token, "decision": decision,
            "subscription_id": subscription, "timestamp": STAMP, "decided_by": "user"}


def resolution(event):
    """How a question was settled, if the event says so."""
    return event.get("extensions", {}).get("agentvoice", {}).get("resolution")


def ask_state(hub, reply_token):
    """How a question stands, as its agent sees it."""
    where = f"{hub.url}/aaep/v1/asks/{reply_token}?wait_seconds=0"
    with urllib.request.urlopen(where, timeout=PATIENCE) as answer:
        return json.load(answer)["status"]
