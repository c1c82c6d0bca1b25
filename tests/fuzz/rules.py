"""What must be true of every request that agents send: which paths, and where they may write."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.apiserver import resources
from tests.fuzz.agents import FuzzFinding
from vnode.api.kinds import Kind
from vnode.pods import stream_messages

BYSTANDERS: Final = frozenset({"bystander", "kube-system", "kube-public"})
"""Namespaces that nobody has given to vnode."""

_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9:._-]{1,253}"
_SUBRESOURCE: Final = "status|binding|eviction|token|resize|ephemeralcontainers|approval|log"
_READS: Final = ("GET", "HEAD")


def _of_group(kind: Kind) -> str:
    return re.escape(kind.path().rpartition("/")[0])


# Its namespace is what a target says, so that it may be nothing but a label.
_STREAM: Final = (
    "/api/v1/namespaces/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    f"/services/https:vnode:streams/proxy{stream_messages.PATH}"
)
_PATHS: Final = re.compile(
    rf"/version|{_STREAM}|"
    + "|".join(sorted({_of_group(kind) for kind in resources.ALL}))
    + "|"
    + "|".join(
        rf"{_of_group(kind)}(?:/namespaces/(?P<n{number}>{_SEGMENT}))?/{kind.plural}"
        rf"(?:/{_SEGMENT}(?:/(?:{_SUBRESOURCE}))?)?"
        for number, kind in enumerate(resources.ALL)
    )
)


@dataclass(slots=True)
class RequestRules:
    """Judges requests; `places` are the namespaces where a user may write, None for most."""

    places: dict[str, frozenset[str] | None]
    found: list[FuzzFinding] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)

    def see(self, cluster: str, user: str, method: str, path: str) -> None:
        """Judge one request."""
        self.count[user] += 1
        text = f"{user} in {cluster}: {method} {path[:300]!r}"
        match = _PATHS.fullmatch(path)
        if match is None:
            self.found.append(FuzzFinding("no path is made of what others wrote", text))
            return

        if method in _READS:
            return

        namespace = next((each for each in match.groupdict().values() if each), None)
        allowed = self.places[user]
        outside = namespace in BYSTANDERS if allowed is None else namespace not in allowed
        if outside:
            self.found.append(FuzzFinding("nobody writes where they have no business", text))

    def take(self) -> list[FuzzFinding]:
        """Return what was wrong since the last time."""
        found, self.found = self.found, []
        return found
