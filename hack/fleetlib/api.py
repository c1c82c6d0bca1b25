"""A small synchronous client of one API server: enough to bring a cluster up and to wait.

The product has a client of its own; this one is apart from it, so that the tools which test the
product do not lean on it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import yaml

from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Object = dict[str, Any]
_NODES = "/api/v1/nodes"
_SHOWN = 30  # objects in the message of a timeout


class Api:
    """Requests with the credentials of a kubeconfig; every call opens a connection of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]
        parts = urlsplit(server["server"])
        self._host, self._port = parts.hostname or "", parts.port or 443
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._load_client(config["users"][0]["user"])

    def _load_client(self, user: dict[str, str]) -> None:
        """Load the client certificate by way of a file, since ssl reads files only."""
        with tempfile.NamedTemporaryFile() as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]))
            pair.flush()
            self._context.load_cert_chain(pair.name)

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout, context=self._context
        )

    def request(
        self, method: str, path: str, body: Object | None = None, timeout: float = 30
    ) -> tuple[int, Any]:
        """Return the status code and the decoded answer; OSError without an answer."""
        connection = self._connect(timeout)
        try:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
        is_json = "json" in answer.headers.get_content_type()
        return answer.status, json.loads(text) if is_json else text

    def call(self, method: str, path: str, body: Object | None = None) -> Any:
        """Return the decoded answer; FleetError unless the status is 2xx."""
        status, answer = self.request(method, path, body)
        if status >= 300:
            reason = answer.get("message") if isinstance(answer, dict) else answer
            raise FleetError(f"{method} {path}: {status} {reason}")
        return answer

    def ready(self) -> bool:
        """Tell whether /readyz answers 200; False also without an answer."""
        try:
            return self.request("GET", "/readyz", timeout=5)[0] == 200
        except OSError:
            return False

    def create_node(self, node: Object) -> None:
        self.call("POST", _NODES, node)

    def wait(
        self,
        path: str,
        done: Callable[[dict[str, Object]], bool],
        seconds: float,
        selector: dict[str, str] | None = None,
    ) -> dict[str, Object]:
        """List and watch `path` until `done(objects by name)` is true; return these objects.

        Survives watches that end and a server that is away. TimeoutError, which shows what there
        was, after `seconds`.
        """
        deadline = time.monotonic() + seconds
        objects: dict[str, Object] = {}
        while True:
            try:
                for objects in self._following(path, selector or {}, deadline):
                    if done(objects):
                        return objects
            except OSError:
                # The server is away, or silent until the deadline; asked again below if it is not.
                if time.monotonic() < deadline:
                    time.sleep(0.2)
            if time.monotonic() >= deadline:
                found = list(objects.items())[:_SHOWN]
                shown = "".join(f"\n{name}: {_shown(item)}" for name, item in found)
                raise TimeoutError(f"{path}: not as wanted within {seconds:.0f} s{shown}")

    def _following(
        self, path: str, selector: dict[str, str], deadline: float
    ) -> Iterator[dict[str, Object]]:
        """Yield the objects by namespace and name, at first and after each change."""
        listed = self.call("GET", f"{path}?{urlencode(selector)}")
        objects = {_key(item): item for item in listed.get("items") or ()}
        yield objects
        version = listed["metadata"]["resourceVersion"]
        left = max(0.1, deadline - time.monotonic())
        query = {
            **selector,
            "watch": "1",
            "resourceVersion": version,
            "timeoutSeconds": int(left) + 1,
        }
        connection = self._connect(left)
        try:
            connection.request("GET", f"{path}?{urlencode(query)}")
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                item = event["object"]
                if event["type"] == "DELETED":
                    objects.pop(_key(item), None)
                else:
                    objects[_key(item)] = item
                yield objects
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def wait_for_nodes(self, names: list[str], seconds: float) -> None:
        """Wait until all of these nodes are Ready."""
        if names:
            self.wait(_NODES, lambda nodes: all(is_ready(nodes.get(n)) for n in names), seconds)


def _shown(item: Object) -> str:
    """Return the taints, conditions and resources of an object, as far as it has any."""
    status = item.get("status", {})
    found = {
        "taints": item.get("spec", {}).get("taints"),
        "conditions": [
            {field: c.get(field) for field in ("type", "status", "reason", "message")}
            for c in status.get("conditions") or ()
        ],
        "allocatable": status.get("allocatable"),
    }
    return json.dumps({field: value for field, value in found.items() if value})


def _key(item: Object) -> str:
    meta = item["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


def condition(item: Object | None, kind: str) -> Object:
    """Return the condition of type `kind`, or an empty one."""
    conditions = (item or {}).get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(item: Object | None) -> bool:
    return condition(item, "Ready").get("status") == "True"
