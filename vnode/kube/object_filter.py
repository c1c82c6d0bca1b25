"""Says what an informer keeps of what it is sent by a server that need not be honest.

Each object must have the form that code relies on; one that does not is treated as if it had not
been sent. What nobody needs of the others is dropped at once, so that a list is never held whole.
All events after a list are bounded together, by half of what a list may have: a server
that sends more is asked for a list, which shows what is left of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from vnode.api import objects
from vnode.api.errors import Gone
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import answer_limits, paging
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.telemetry import metrics

Accept: TypeAlias = Callable[[Any], bool]
Trim: TypeAlias = Callable[[Object], Object]
"""Makes an object smaller; it need not take one that it has made."""

log = logging.getLogger(__name__)


class ObjectFilter:
    """Judges and trims objects of one kind from one cluster; without `accept` it takes all."""

    def __init__(
        self, client: Client, kind: Kind, accept: Accept | None, trim: Trim | None = None
    ) -> None:
        self.limit: AnswerLimit | None = None if accept is None else answer_limits.LIST
        self._client = client
        self._kind = kind
        self._accept = accept
        self._trim = trim
        self._size = 0  # bytes of the events since the last list
        self._values = 0
        self._is_logged = False  # whether a malformed object was logged since `begin`

    def begin(self) -> None:
        """Begin with a list or a watch: one line is logged for all its malformed objects."""
        self._is_logged = False

    def keep(self, obj: Any) -> Object | None:
        """Return what is kept of an object, to be asked once; None, and counted, if refused."""
        if self._accept is not None and not self._accept(obj):
            self._refuse("%s sent one of %s that cannot be read")
            return None

        objects.metadata(obj).pop("managedFields", None)
        return obj if self._trim is None else self._trim(obj)

    def leave_out(self, key: str) -> None:
        """Count an object that is too large to be read."""
        self._refuse(paging.TOO_LARGE, key)

    def _refuse(self, text: str, *what: str) -> None:
        cluster, plural = self._client.name, self._kind.plural
        metrics.MALFORMED_OBJECTS.labels(cluster, plural).inc()
        if not self._is_logged:
            self._is_logged = True
            log.warning(text, cluster, plural, *what)

    def forget_events(self) -> None:
        """Begin anew with the bound of events: a complete list shows what is left of them."""
        self._size = self._values = 0

    def add_event(self, size: int, values: int) -> None:
        """Count an event; Gone, which leads to a list, if all since the last list are too large."""
        if self.limit is None:
            return

        self._size += size
        self._values += values
        if self._size > self.limit.size // 2 or self._values > self.limit.values // 2:
            raise Gone(410, "Expired", "the events since the last list are too large")
