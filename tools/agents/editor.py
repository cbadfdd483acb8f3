"""An editor that speaks the Agent Client Protocol, without a window: it starts a turn and answers what it is told to."""

import contextlib
import json
import queue
import subprocess
import threading
import time

from machine import PATIENCE, CaseFailure


class Editor:
    """Starts an agent, and lets it work on one prompt."""

    def __init__(self, words, env, folder):
        self.process = subprocess.Popen([str(it) for it in words], env=env, cwd=folder, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        self.messages, self.last, self.folder = queue.Queue(), 0, folder
        self.errors, self.text, self.updates = [], "", []
        # What the agent asks, by its id, and the ids of requests that it took back.
        self.asked, self.taken_back, self.answers, self.ended = {}, [], {}, False
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.messages.put(json.loads(line))
        self.messages.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip())

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        self.process.kill()
        self.process.wait(PATIENCE)

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, parameters):
        self.last += 1
        self._send({"id": self.last, "method": method, "params": parameters})
        return self.last

    def _take(self, seconds):
        try:
            message = self.messages.get(timeout=seconds)
        except queue.Empty:
            return
        if message is None:
            self.ended = True
            self.messages.put(None)
            time.sleep(0.05)
        elif "method" not in message:
            self.answers[message["id"]] = message
        elif message["method"] == "session/request_permission":
            self.asked[json.dumps(message["id"])] = message
        elif message["method"] == "session/update":
            self._update(message["params"]["update"])
        elif message["method"] == "$/cancel_request":
            self.taken_back.append(message["params"].get("requestId"))
        elif "id" in message:
            error = {"code": -32601, "message": "This editor does not know this."}
            self._send({"id": message["id"], "error": error})

    def _update(self, update):
        self.updates.append(update)
        if update.get("sessionUpdate") == "agent_message_chunk":
            self.text += update["content"].get("text", "")

    def until(self, is_so, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end or self.ended:
                errors = "\n      ".join(self.errors[-15:])
                kinds = [it.get("sessionUpdate") for it in self.updates][-15:]
                raise CaseFailure(f"{what} did not come; answers: {list(self.answers.values())[-1:]}, updates: {kinds}, "
                                  f"errors:\n      {errors}")
            self._take(0.2)

    def answer_of(self, number):
        self.until(lambda: number in self.answers, f"the answer to request {number}")
        answer = self.answers[number]
        if "error" in answer:
            raise CaseFailure(f"the agent answered with an error: {answer['error']}")
        return answer["result"]

    def begin(self, prompt, mode=None):
        """Starts a turn. Returns the number of its request."""
        self.answer_of(self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}}))
        session = self.answer_of(self.request("session/new", {"cwd": str(self.folder), "mcpServers": []}))
        self.session = session["sessionId"]
        if mode:
            self.answer_of(self.request("session/set_mode", {"sessionId": self.session, "modeId": mode}))
        text = [{"type": "text", "text": prompt}]
        return self.request("session/prompt", {"sessionId": self.session, "prompt": text})

    def question(self):
        """Waits until the agent asks the person, and returns the request."""
        self.until(lambda: self.asked, "a question of the agent")
        return next(iter(self.asked.values()))

    def answer(self, asked, kind):
        """The person answers in the editor, with the first option of a kind."""
        option = next(it for it in asked["params"]["options"] if it["kind"] == kind)
        outcome = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        self._send({"id": asked["id"], "result": outcome})
