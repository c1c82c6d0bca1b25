"""Authorizes requests to a virtual node, mapped to `nodes/SUBRESOURCE` as by a kubelet.

The API server decides, by SubjectAccessReview: it is asked about the most specific subresource
first, and its answers are cached. Unlike a kubelet, this takes `create` to run a command, also for
a WebSocket, which begins with a GET: many a monitoring agent has `get` on `nodes/proxy`.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.auth.authentication import UserInfo
from vnode.kubelet.auth.cache import ExpiringCache
from vnode.kubelet.refusal import Refused
from vnode.runtime.reviews_in_flight import ReviewsInFlight

ALLOWED_FOR: Final = 300.0  # seconds, the kubelet's default
DENIED_FOR: Final = 30.0  # seconds, the kubelet's default
_LIMIT: Final = 8192  # answers

_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}

# What API servers do with `kubectl exec` is a POST as well, so all of them have the permission.
_STREAMS: Final = ("/exec/", "/attach/", "/portForward/", "/run/")

# Path -> subresources in the order in which they are tried. Everything else needs `proxy`.
_SUBRESOURCES: Final = (
    ("/pods", ("pods", "proxy")),
    ("/runningpods", ("pods", "proxy")),
    ("/healthz", ("healthz", "proxy")),
    ("/configz", ("configz", "proxy")),
    ("/stats", ("stats",)),
    ("/metrics", ("metrics",)),
    ("/logs", ("log",)),
    ("/checkpoint", ("checkpoint",)),
    ("/statusz", ("statusz",)),
    ("/flagz", ("configz",)),
)


def verb_of(method: str, path: str) -> str:
    """Return the API verb of a request, "" for a method that has none."""
    verb = _VERBS.get(method.upper(), "")
    return "create" if verb == "get" and path.startswith(_STREAMS) else verb


def subresources_of(path: str) -> tuple[str, ...]:
    """Return the subresources of `nodes`, each of which allows the path, in the order to try."""
    for prefix, subresources in _SUBRESOURCES:
        if path == prefix or path.startswith(prefix + "/"):
            return subresources

    return ("proxy",)


class Authorizer:
    """Asks the API server whether a caller may make a request."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._in_flight = ReviewsInFlight()
        self._answers: ExpiringCache[tuple[UserInfo, str, str, str], bool] = ExpiringCache(
            _LIMIT, clock or SystemClock()
        )

    async def authorize(self, caller: UserInfo, node: str, method: str, path: str) -> None:
        """Raise Refused unless the caller may: 403, or 500 if the API server does not answer."""
        verb, subresources = verb_of(method, path), subresources_of(path)
        for subresource in subresources:
            try:
                allowed = await self._is_allowed(caller, node, verb, subresource)
            except VnodeError as error:
                raise Refused(
                    500,
                    f"Authorization error (user={caller.user}, verb={verb}, resource=nodes, "
                    f"subresource={subresource})",
                ) from error

            if allowed:
                return

        raise Refused(
            403,
            f"Forbidden (user={caller.user}, verb={verb}, resource=nodes, "
            f"subresource(s)=[{' '.join(subresources)}])\n",
        )

    async def _is_allowed(self, caller: UserInfo, node: str, verb: str, subresource: str) -> bool:
        key = (caller, node, verb, subresource)
        allowed = self._answers.get(key)
        if allowed is None:
            async with self._in_flight.one_more(node):
                answer = await self._client.create(
                    kinds.SUBJECT_ACCESS_REVIEWS, review(caller, node, verb, subresource)
                )

            allowed = bool((answer.get("status") or {}).get("allowed"))
            self._answers.put(key, allowed, ALLOWED_FOR if allowed else DENIED_FOR)

        return allowed


def review(caller: UserInfo, node: str, verb: str, subresource: str) -> Object:
    """Build the SubjectAccessReview that asks whether `caller` may."""
    return {
        "apiVersion": kinds.SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": kinds.SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {
            **subject(caller),
            "resourceAttributes": {
                "verb": verb,
                "version": "v1",
                "resource": "nodes",
                "subresource": subresource,
                "name": node,
            },
        },
    }


def subject(caller: UserInfo) -> Object:
    """Return the fields of a SubjectAccessReview's spec that identify the caller."""
    return {
        "user": caller.user,
        "groups": list(caller.groups),
        "uid": caller.uid,
        "extra": {key: list(values) for key, values in caller.extra},
    }
