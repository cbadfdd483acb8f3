"""What the scenes share: a hub, a recorder, someone who answers, and agents that behave as agents do."""

import http.client
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time

CONTEXT = "https://aaep-protocol.org/context/v1"
EXTENSION = "urn:uuid:ad788fbe-34bf-41c1-a6a9-7fc3ed86da4e"


class Stage:
    """A hub in a folder of its own, recorded, with someone who listens and can answer."""

    def __init__(self, aaep, output):
        self.aaep, self.output = aaep, output
        self.folder = tempfile.TemporaryDirectory()
        names = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("AAEP_")}
        self.environment = clean | {name: self.folder.name for name in names}

    def run(self, *arguments, **more):
        return subprocess.Popen([self.aaep, *arguments], env=self.environment, text=True, **more)

    def __enter__(self):
        self.hub = self.run("serve", "--bind", "127.0.0.1:0", "--socket", "none", "--log", "error",
                            "--store", self.folder.name + "/store", stdout=subprocess.PIPE)
        self.origin = self.hub.stdout.readline().strip().removeprefix("Listening on ")
        self.environment["AAEP_HUB"] = self.origin
        self.person = self.run("listen", "--hub", self.origin, "--json", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.recorder = self.run("capture", "--hub", self.origin, "--questions", "--output", self.output,
                                 stderr=subprocess.PIPE)
        assert self.recorder.stderr.readline().startswith("Recording")
        time.sleep(1)
        return self

    def __exit__(self, *problem):
        time.sleep(1)
        self.recorder.terminate()
        print(self.recorder.communicate()[1].strip())
        self.person.stdin.close()
        for process in (self.person, self.hub):
            process.terminate()
            process.wait()
        self.folder.cleanup()

    def types(self, words):
        """The person types it where they listen."""
        self.person.stdin.write(words + "\n")
        self.person.stdin.flush()

    def answers(self, number, words):
        """The person answers from another terminal."""
        assert self.run("answer", str(number), words, stdout=subprocess.DEVNULL).wait() == 0

    def after(self, seconds, act, *arguments):
        """Does something later, while the agents go on."""
        timer = threading.Timer(seconds, act, arguments)
        timer.start()
        return timer


class Agent:
    """An agent that tells a hub what it does, over one connection. What it does has a seed, so it is the same each time."""

    def __init__(self, stage, agent_id, name, seed):
        self.producer = {"agent_id": agent_id, "agent_name": name}
        host = stage.origin.removeprefix("http://")
        self.connection = http.client.HTTPConnection(host, timeout=120)
        self.random = random.Random(seed)
        self.session, self.calls, self.outputs = None, 0, 0

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        assert 200 <= answer.status < 300, text
        return json.loads(text)

    def event(self, kind, **fields):
        event = {"type": "aaep:agent." + kind, "producer": self.producer, **fields}
        return event | ({"session_id": self.session} if self.session else {})

    def tell(self, kind, **fields):
        return self.post("/aaep/v1/publish", self.event(kind, **fields))

    def wait(self, least, most=None):
        time.sleep(self.random.uniform(least, most or least))

    def start(self, summary):
        self.session = None
        self.session = self.tell("session.started", summary_normal=summary)["session_id"]

    def state(self, to, **fields):
        self.tell("state.changed", to_state=to, **fields)

    def call(self, tool, summary, result=None, seconds=(0.1, 0.6), status="success", **fields):
        """Uses a tool, waits for it, and tells how it went."""
        self.calls += 1
        call = {"tool": tool, "tool_call_id": f"call_{self.calls}"}
        self.tell("tool.invoked", **call, summary_normal=summary, **fields)
        self.wait(*seconds)
        words = {"error_message": result} if status != "success" else {"summary_normal": result}
        self.tell("tool.completed", **call, status=status, **(words if result else {}))

    def storm(self, calls):
        """Uses tools all at once, as models do that call in parallel; they come back out of order."""
        running = []
        for tool, summary, result in calls:
            self.calls += 1
            call = {"tool": tool, "tool_call_id": f"call_{self.calls}"}
            self.tell("tool.invoked", **call, summary_normal=summary)
            running.append((call, result))
            self.wait(0.01, 0.05)
        self.random.shuffle(running)
        for call, result in running:
            self.wait(0.02, 0.3)
            words = {"summary_normal": result} if result else {}
            self.tell("tool.completed", **call, status="success", **words)

    def progress(self, percent, description):
        self.tell("progress.updated", progress={"percent": percent, "description": description})

    def say(self, text, language=None):
        """Streams a text as models do: a few tokens at a time, unevenly, sometimes with a pause."""
        self.outputs += 1
        tokens = re.findall(r"\s*\S{1,5}|\s+", text)
        position = 0
        while tokens:
            count = self.random.choice([1, 2, 2, 3, 3, 4, 5])
            chunk, tokens = "".join(tokens[:count]), tokens[count:]
            more = {"language": language} if language else {}
            self.tell("output.streaming", output_id=f"out_{self.outputs}", chunk=chunk, position=position,
                      complete=not tokens, **more)
            position += len(chunk)
            self.wait(0.02, 0.09)
            if self.random.random() < 0.03:
                self.wait(0.3, 1.2)

    def confirm(self, action, consequence, tool=None, **fields):
        """Asks, perhaps for a certain tool, and waits; how it ended."""
        if tool:
            fields["@context"] = [CONTEXT, EXTENSION]
            fields["extensions"] = {"agentvoice": {"tool": tool}}
        return self.ask("awaiting.confirmation", action=action, consequence=consequence,
                        **{"default_decision": "reject", "timeout_seconds": 120, **fields})

    def ask(self, kind, **fields):
        state = self.post("/aaep/v1/asks?wait_seconds=60", self.event(kind, **fields))
        while state["status"] == "open":
            token = state["reply_token"]
            self.connection.request("GET", f"/aaep/v1/asks/{token}?wait_seconds=60")
            state = json.loads(self.connection.getresponse().read())
        return state["outcome"]

    def end(self, summary):
        self.tell("session.completed", summary_normal=summary)

    def fail(self, category, summary, hint):
        self.tell("session.errored", error_category=category, summary_normal=summary, remediation_hint=hint)


def at_once(*parts):
    """Lets several agents do their parts at the same time."""
    errors = []

    def guard(part):
        try:
            part()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guard, args=[part]) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
