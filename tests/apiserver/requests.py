"""One request as the server sees it: who asks for what, parsed from the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.apiserver import resources, status
from vnode.api.kinds import Kind

_KINDS: Final = {(kind.group, kind.version, kind.plural): kind for kind in resources.ALL}
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class APIRequest:
    """A request; `kind` is None where the path is no resource's (`/version`).

    `client` is the user name of whoever asks.
    """

    client: str
    method: str
    path: str
    kind: Kind | None
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    body: Any
    content_type: str
    accept: str

    @property
    def verb(self) -> str:
        """The verb, as RBAC has it."""
        if self.method != "GET":
            return _VERBS[self.method]

        if self.query.get("watch") in ("true", "1"):
            return "watch"

        return "get" if self.name or self.kind is None else "list"

    @property
    def key(self) -> str:
        """The key of the object that is named."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_dry_run(self) -> bool:
        """Nothing must be stored."""
        options = self.body.get("dryRun") if self.verb == "delete" and self.body else None
        return self.query.get("dryRun") == "All" or options == ["All"]


def parse(
    client: str,
    method: str,
    path: str,
    query: Mapping[str, str] | None,
    body: Any,
    headers: Mapping[str, str],
) -> APIRequest:
    """Parse a request; StatusError if the path names a resource that is not served."""
    kind, namespace, name, subresource = _place(path)
    return APIRequest(
        client,
        method,
        path,
        kind,
        namespace,
        name,
        subresource,
        dict(query or {}),
        body,
        headers.get("Content-Type", ""),
        headers.get("Accept", ""),
    )


def _place(path: str) -> tuple[Kind | None, str, str, str]:
    parts = path.strip("/").split("/")
    core = parts[0] == "api"
    group, rest = ("", parts[1:]) if core else (parts[1] if len(parts) > 1 else "", parts[2:])
    if parts[0] not in ("api", "apis") or len(rest) < 2:
        return None, "", "", ""

    version, *rest = rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]

    kind = _KINDS.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or bool(namespace) > kind.namespaced:
        raise status.unknown_path()

    name, subresource = (*rest[1:], "", "")[:2]
    return kind, namespace, name, subresource
