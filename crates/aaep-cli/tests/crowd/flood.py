"""Holds as many connections to a hub as it can, and opens each again as soon as the hub closes it.

Arguments: the path of a socket or HOST:PORT; how many; and what it does with them: "idle" sends nothing, "head" half of a
request, "get" whole requests, "churn" closes each at once. Says "ready" when it has opened as many as it holds.
"""

import selectors
import socket
import sys
import time

address, count, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
HEAD = b"GET /aaep/v1/agents HTTP/1.1\r\nhost: localhost\r\n"


def connect():
    is_unix = address.startswith("/")
    stream = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
    stream.setblocking(False)
    host, _, port = address.rpartition(":")
    try:
        stream.connect(address if is_unix else (host, int(port)))
    except BlockingIOError:
        if is_unix:
            stream.close()
            return None
    return stream


selector = selectors.DefaultSelector()
opened = 0
while True:
    for _ in range(count - len(selector.get_map())):
        stream = connect()
        if stream is None:
            break
        opened += 1
        if opened == count:
            print("ready", flush=True)
        if kind == "churn":
            stream.close()
            continue
        speaks = selectors.EVENT_WRITE if kind in ("head", "get") else 0
        selector.register(stream, selectors.EVENT_READ | speaks)
    # The other programs of a test machine get some time as well.
    time.sleep(0.003)
    for key, events in selector.select(0.05) if selector.get_map() else []:
        stream = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                stream.send(HEAD + (b"\r\n" if kind == "get" else b""))
                selector.modify(stream, selectors.EVENT_READ)
                continue
            is_open = bool(stream.recv(65536))
        except BlockingIOError:
            continue
        except OSError:
            is_open = False
        if not is_open:
            selector.unregister(stream)
            stream.close()
