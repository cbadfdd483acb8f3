"""Headless Chromium, driven through ChromeDriver by the protocol of the W3C, and a server for one page."""

import contextlib
import http.server
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from support import HERE, PATIENCE, check, lines_of

# Nothing but the page is loaded, from nowhere but this machine.
FLAGS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window of a browser with a profile of its own, which is gone afterwards."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="aaep-clients-"))
        self.process = None
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        # In a group of its own, so that the browser ends with it, and with all its files in our folder.
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        env={**os.environ, "TMPDIR": str(self.folder)})
        lines, port = lines_of(self.process), None
        with contextlib.suppress(queue.Empty):
            while port is None and (line := lines.get(timeout=PATIENCE)) is not None:
                port = re.search(r"started successfully on port (\d+)", line)
        check(port, "ChromeDriver runs.")
        self.driver = f"http://127.0.0.1:{port[1]}/session"
        flags = FLAGS + [f"--user-data-dir={self.folder}/profile"]
        if os.geteuid() == 0:
            # Chromium has no sandbox for root.
            flags.append("--no-sandbox")
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": flags}}
        made = self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self.driver += f"/{made['sessionId']}"
        name = made["capabilities"]
        check(True, f"{name['browserName']} {name['browserVersion']} runs.")

    def __exit__(self, *_why):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        # Its last files may still appear while they are removed.
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.driver + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=3 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            return check(False, f"The browser does {method} {path}.", error.read())

    def go_to(self, address):
        self.call("POST", "/url", {"url": address})

    def run(self, script, *values):
        """Runs a script in the page and gives what it returns, also what it promises."""
        return self.call("POST", "/execute/sync", {"script": script, "args": values})

    def click(self, selector):
        """Clicks as a person does: only on what can be seen and is not covered."""
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[ELEMENT]}/click", {})

    def window(self):
        return self.call("GET", "/window")

    def new_window(self):
        """Opens another tab and goes there."""
        handle = self.call("POST", "/window/new", {"type": "tab"})["handle"]
        self.switch(handle)
        return handle

    def switch(self, handle):
        self.call("POST", "/window", {"handle": handle})

    def wait(self, script, sentence):
        """Waits until a script returns something, and gives that."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if found := self.run(script):
                check(True, sentence)
                return found
            time.sleep(0.05)
        return check(False, sentence, self.run("return document.body.innerText"))


@contextlib.contextmanager
def origin():
    """A server that knows one page, and the origin of that."""
    page = (HERE / "page.html").read_bytes()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            is_page = self.path.split("?")[0] == "/"
            self.send_response(200 if is_page else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page if is_page else b"")

        def log_message(self, *_ignored):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
