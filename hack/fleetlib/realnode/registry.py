"""A read-only registry of a few images in memory, on the node's own loopback address.

containerd is told to ask it for every image of every registry. So images are pulled as on any node
(`imagePullPolicy: Always` works), and one that does not exist is unknown at once.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hack.fleetlib.realnode.images import Blob, Images

PORT: Final = 5035
_PATH: Final = re.compile(r"^/v2/(?P<name>.+)/(?P<what>manifests|blobs)/(?P<reference>[^/]+)$")


def find(images: Images, path: str) -> Blob | None:
    """Return the content at `path`; only the last part of an image's name counts."""
    asked = _PATH.match(path.partition("?")[0])
    if asked is None:
        return None
    reference = asked["reference"]
    if asked["what"] == "manifests" and not reference.startswith("sha256:"):
        return images.manifests.get(asked["name"].rpartition("/")[2])
    return images.blobs.get(reference)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    images: Images

    def do_GET(self) -> None:
        self._answer(whole=True)

    def do_HEAD(self) -> None:
        self._answer(whole=False)

    def _answer(self, *, whole: bool) -> None:
        if self.path.rstrip("/") == "/v2":
            self._send(200, "application/json", b"{}", whole=whole)
        elif blob := find(self.images, self.path):
            self._send(200, blob.media_type, blob.content, whole=whole, digest=blob.digest)
        else:
            error = {
                "code": "NAME_UNKNOWN",
                "message": "this node has few images, see docs/testing.md",
            }
            content = json.dumps({"errors": [error]}).encode()
            self._send(404, "application/json", content, whole=whole)

    def _send(
        self, status: int, media_type: str, content: bytes, *, whole: bool, digest: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if whole:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Log nothing: containerd's own log says what it asked for."""


def serve(images: Images) -> None:
    """Answer in a thread from now on."""
    handler = type("Handler", (_Handler,), {"images": images})
    server = ThreadingHTTPServer(("127.0.0.1", PORT), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="registry", daemon=True).start()
