"""Answers as they come over a real socket, good and bad."""

from __future__ import annotations

import socket
import threading
import unittest

from aaep import HubAway
from aaep.address import parse
from aaep.http import HubAnswer, HubConnection

from .support import limit_time


def answer_to(text: bytes, in_pieces: bool = False) -> HubAnswer:
    """What a connection makes of these bytes, after which the server hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            stream, _ = server.accept()
            with stream:
                stream.recv(65536)
                try:
                    for at in range(0, len(text), 1 if in_pieces else len(text) or 1):
                        stream.sendall(text[at : at + 1] if in_pieces else text)
                except OSError:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        connection = HubConnection(parse(f"http://127.0.0.1:{server.getsockname()[1]}"), None)
        try:
            return connection.call("GET", "/x", timeout=5)
        finally:
            connection.close()
            thread.join()


class Answers(unittest.TestCase):
    def setUp(self) -> None:
        limit_time()

    def test_bodies_come_with_a_length_in_chunks_or_until_the_end(self) -> None:
        for text in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            b"HTTP/1.0 200\r\n\r\nhello",
        ):
            for in_pieces in (False, True):
                self.assertEqual(answer_to(text, in_pieces).body, b"hello")
        self.assertEqual(answer_to(b"HTTP/1.1 204 No Content\r\n\r\n"), HubAnswer(204, b"", None))
        self.assertEqual(answer_to(b"HTTP/1.1 429 x\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n").retry_after, 7.0)

    def test_an_answer_that_is_cut_off_or_no_answer_at_all_is_a_hub_that_is_away(self) -> None:
        for text in (
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\nx",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n" + b"x" * (5 * 1024 * 1024),
            b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (5 * 1024 * 1024),
            b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200,
            b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000,
            b"HTTP/1.1 2\xc3\xbc0 OK\r\n\r\n",
            b"HTTP/1.1 999 No\r\n\r\n",
            b"SSH-2.0-OpenSSH_9\r\n\r\n",
            b"\xff\xff\r\n\r\n",
        ):
            with self.assertRaises(HubAway, msg=text[:80]):
                answer_to(text)


if __name__ == "__main__":
    unittest.main()
