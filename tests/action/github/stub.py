"""Comments, files and a download over HTTP, with faults planted before or after the work is done.

Checked against GitHub's documentation of rate limits (403 or 429, with or without `Retry-After`, `x-ratelimit-remaining: 0` with a
reset) and of comments (201 on creation, 200 on an edit, 404 for a deleted one). Answers may be lost, cut off or empty on any network.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import Self

NOW = "2026-11-03T12:00:00Z"


@dataclass
class Fault:
    """What goes wrong once. `late`: the request has done its work by then. Status 0: the connection is lost; -1: no answer comes within
    the client's patience. `at`: it strikes the request with this number, from 0."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"message": "wrong"}'
    late: bool = False
    verb: str | None = None
    at: int | None = None

    def strikes(self, verb: str, number: int) -> bool:
        """Whether it is for the request `number`, with this `verb`."""
        return self.verb in (None, verb) and self.at in (None, number)


class Stub:
    """Runs while it is entered. `seen` are the requests; `faults` are used up one by one; the list still shows the comments `deleted`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.faults: list[Fault] = []
        self.comments: list[dict[str, Any]] = []
        self.deleted: list[dict[str, Any]] = []
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.silence = 1.0  # seconds
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # headers and body in one piece: in two, each answer waits 40 ms for the other side's acknowledgment
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                pass

            def _handle(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                stub.seen.append((self.command, self.path, dict(self.headers)))
                fault = next((f for f in stub.faults if f.strikes(self.command, len(stub.seen) - 1)), None)
                if fault is not None:
                    stub.faults.remove(fault)
                    if fault.late:
                        stub.work(self.command, self.path.partition("?")[0], body)
                    if fault.status < 0:
                        time.sleep(stub.silence)
                    if fault.status <= 0:
                        self.close_connection = True
                        self.connection.close()
                        return
                    self._send(fault.status, fault.body.encode(), fault.headers)
                    return
                status, answer = stub.work(self.command, self.path.partition("?")[0], body)
                if isinstance(answer, str):
                    self._send(status, b"", {"Location": answer})
                elif isinstance(answer, bytes):
                    self._send(status, answer, {})
                else:
                    self._send(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})

            def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response_only(status)  # tells no time: this machine's is not that of the tests
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def work(self, verb: str, path: str, body: bytes) -> tuple[int, Any]:
        """What GitHub would do."""
        if (verb, path) in self.answers:
            return self.answers[verb, path]
        if path.endswith("/comments") and verb == "GET":
            return 200, [*self.deleted, *self.comments]
        if path.endswith("/comments") and verb == "POST":
            made = {"id": 1 + len(self.comments), "body": json.loads(body)["body"], "user": {"login": "bot", "id": 1}, "created_at": NOW}
            self.comments.append(made)
            return 201, made
        if "/issues/comments/" in path and verb == "PATCH":
            known = next((c for c in self.comments if str(c["id"]) == path.rpartition("/")[2]), None)
            if known is None:
                return 404, {"message": "Not Found"}
            known["body"] = json.loads(body)["body"]
            return 200, known
        return 404, {"message": "Not Found"}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
