"""Says which requests do not wait for an API server's pace, and which are sent before others.

Leases, the status of nodes and ClusterSummaries keep virtual nodes Ready, and whoever leads in
office: they are sent at once, however the server is. Probes say so themselves (`vital`). What
somebody waits for meanwhile comes next (`awaited`): the candidate scheduler, which holds a place
for a pod, and whoever asks for a container's log. All else is work in the background.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from typing import Final

from vnode.api import kinds

LEASES: Final = f"/apis/{kinds.LEASES.api_version}/"  # not: what is called `leases`
_NODES: Final = kinds.NODES.path()
_SUMMARIES: Final = kinds.CLUSTER_SUMMARIES.path()


class Urgency(IntEnum):
    """How urgent a request is: the lower, the more."""

    VITAL = 0
    AWAITED = 1
    BACKGROUND = 2


_urgency: Final[ContextVar[Urgency]] = ContextVar("urgency", default=Urgency.BACKGROUND)


@contextmanager
def vital() -> Iterator[None]:
    """Have requests that are sent inside wait for nothing."""
    with _being(Urgency.VITAL):
        yield


@contextmanager
def awaited() -> Iterator[None]:
    """Have requests that are sent inside, also by tasks that begin there, go before others."""
    with _being(Urgency.AWAITED):
        yield


@contextmanager
def _being(urgency: Urgency) -> Iterator[None]:
    token = _urgency.set(urgency)
    try:
        yield
    finally:
        _urgency.reset(token)


def of(method: str, path: str) -> Urgency:
    """Return how urgent a request is that is sent here."""
    is_beat = method != "GET" and path.startswith((_NODES, _SUMMARIES))
    return Urgency.VITAL if is_beat or path.startswith(LEASES) else _urgency.get()
