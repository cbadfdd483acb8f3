"""A real hub in a folder of its own, a person who listens, and false hubs that lie."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aaep import Hub, sentences, subscriber

AAEP = os.environ.get("AAEP", "aaep")
PATIENCE = int(os.environ.get("PATIENCE", "30"))
# On a busy machine a token may take seconds, and then the kit rightly sends half a sentence.
sentences.PATIENCE_SECONDS = 2.0 * PATIENCE


def limit_time() -> None:
    """What hangs fails, and says where. Begins again with each test."""
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)


limit_time()


class RealHub:
    """A hub that can be stopped, killed and started again."""

    def __init__(self, config: str = "", port: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="aaep-python-"))
        (self.folder / "hub.toml").write_text(config)
        self.socket = str(self.folder / "hub.sock")
        self.bind = f"127.0.0.1:{port}"
        self.process: subprocess.Popen[str] | None = None
        self.start()
        # The person has a token, as everyone who answers and is not the owner's own program has.
        self.person_token = self.token("person", "listen", "reply")

    def start(self) -> None:
        place = self.folder
        arguments = [AAEP, "serve", "--bind", self.bind, "--config", place / "hub.toml", "--store", place / "store"]
        arguments += ["--tokens", place / "tokens.toml", "--keys", place / "keys", "--socket", self.socket]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AAEP")}
        with open(place / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(it) for it in arguments], stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said.startswith("Listening on http://"), (said, (place / "log").read_text()[-2000:])
        self.url = said.split()[-1]
        self.bind = self.url.removeprefix("http://")

    def token(self, name: str, *scopes: str) -> str:
        arguments = [AAEP, "tokens", "new", "--json", "--name", name, "--for", "me"]
        arguments += ["--file", str(self.folder / "tokens.toml")]
        for scope in scopes:
            arguments += ["--scope", scope]
        made = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=PATIENCE)
        return str(json.loads(made.stdout)["secret"])

    def end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def person(self, **more: Any) -> Person:
        return Person(self, **more)

    def agent(self, name: str = "tidy", **more: Any) -> Hub:
        return Hub(name, address=self.url, **more)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> RealHub:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


class Person:
    """A person who listens, and answers what they are told to."""

    def __init__(self, hub: RealHub, **more: Any) -> None:
        self.line = subscriber.connect("reader", address=hub.url, token=hub.person_token, **more)
        self.news: queue.Queue[subscriber.News] = queue.Queue()
        self.heard: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()
        # What happens before the stream is there is told as a summary.
        until = time.monotonic() + PATIENCE
        while not self.line.is_connected and time.monotonic() < until:
            time.sleep(0.002)

    def _listen(self) -> None:
        for news in self.line:
            if isinstance(news, subscriber.Event):
                self.heard.append(news.event)
            self.news.put(news)

    def next_ask(self) -> subscriber.Ask:
        while True:
            news = self.news.get(timeout=PATIENCE)
            if isinstance(news, subscriber.Ask):
                return news

    def hears(self, kind: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        while True:
            news = self.news.get(timeout=PATIENCE)
            if isinstance(news, subscriber.Event) and news.type == f"agent.{kind}" and where(news.event):
                return news.event

    def decides(self, accept: bool = True) -> subscriber.Ask:
        """Waits for a question and answers it, in this thread."""
        ask = self.next_ask()
        ask.accept() if accept else ask.reject()
        return ask

    def will(self, *decisions: bool) -> None:
        """Answers the next questions, in another thread."""

        def answer() -> None:
            for decision in decisions:
                self.decides(decision)

        threading.Thread(target=answer, daemon=True).start()

    def close(self) -> None:
        self.line.close()

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


Answer = Callable[[str, str, bytes], "tuple[int, Any]"]


@contextlib.contextmanager
def false_hub(answer: Answer) -> Iterator[str]:
    """A server that answers each request as this function says: with a status, and JSON or bytes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            status, body = answer(self.command, self.path, self.rfile.read(length))
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            # Those who are lied to hang up.
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def takes_all(method: str, path: str, body: bytes) -> tuple[int, Any]:
    """A hub that takes every event."""
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    answers = [{"event_id": it.get("event_id"), "session_id": it.get("session_id")} for it in lines]
    return 200, "\n".join(json.dumps(it) for it in answers).encode()
