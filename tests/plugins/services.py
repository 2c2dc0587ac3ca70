"""Services of the tests: extenders on this machine, and what they were asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[Any], Any]
"""What a verb answers to a document: a document, a text that is sent as it is, or a status code."""


@dataclass
class Service:
    """An extender. `asked` are its verbs with the documents it got, in order."""

    answers: Mapping[str, Answer]
    url: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


@contextmanager
def serving(tls: ssl.SSLContext | None = None, **answers: Answer) -> Iterator[Service]:
    """Run an extender on a free port of the loopback interface."""
    service = Service(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            verb = self.path.rpartition("/")[2]
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append((verb, document))
            answer = service.answers[verb](document)
            code, body = (answer, "") if isinstance(answer, int) else (200, answer)
            body = body if isinstance(body, str) else json.dumps(body)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    service.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/sub"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
