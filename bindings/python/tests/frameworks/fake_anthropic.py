"""A server that speaks like the Messages API: it says the text, calls the tool, and closes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .scene import ARGS, CLOSING, TOKENS


def events(text: list[str], tool: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
                               "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"message": message}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for token in text:
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": token}}
    yield "content_block_stop", {"index": 0}
    if tool is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        yield "content_block_start", {"index": 1, "content_block": block}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(ARGS)}
        yield "content_block_delta", {"index": 1, "delta": delta}
        yield "content_block_stop", {"index": 1}
    stop = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


@contextlib.contextmanager
def fake_anthropic(told: list[str], tool: str) -> Iterator[str]:
    """Its address. What the model is told of the tool goes to `told`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            if "count_tokens" in self.path:
                return self.answer("application/json", b'{"input_tokens": 1}')
            messages: list[Any] = request.get("messages", [])
            parts = [part for it in messages if isinstance(it["content"], list) for part in it["content"]]
            results = [part for part in parts if part.get("type") == "tool_result"]
            told.extend(json.dumps(part.get("content")) for part in results)
            has_tool = any(it.get("name") == tool for it in request.get("tools", []))
            said = CLOSING if results else TOKENS if has_tool else ["Title"]
            lines = events(list(said), tool if has_tool and not results else None)
            body = "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in lines)
            self.answer("text/event-stream", body.encode())

        def do_GET(self) -> None:
            self.answer("application/json", b"{}")

        do_HEAD = do_GET  # noqa: N815

        def answer(self, content_type: str, body: bytes) -> None:
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
