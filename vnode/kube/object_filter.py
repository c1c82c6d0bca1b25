"""Judges what an informer is sent by a server that need not be honest.

Each object must have the form that code relies on; one that does not is treated as if it had not
been sent. All events after a list are bounded together, by half of what a list may have: a server
that sends more is asked for a list, which shows what is left of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from vnode.api.errors import Gone
from vnode.api.kinds import Kind
from vnode.api.objects import Objects
from vnode.kube import answer_limits, paging
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.telemetry import metrics

BATCH: Final = 200
"""Objects of a list that are looked at before others run: some ten milliseconds."""

log = logging.getLogger(__name__)


class ObjectFilter:
    """Judges objects of one kind from one cluster; all are accepted without `accept`."""

    def __init__(self, client: Client, kind: Kind, accept: Callable[[Any], bool] | None) -> None:
        self.limit: AnswerLimit | None = None if accept is None else answer_limits.LIST
        self._client = client
        self._kind = kind
        self._accept = accept
        self._size = 0  # bytes of the events since the last list
        self._values = 0
        self._is_logged = False  # whether a malformed object was logged since `begin`

    def begin(self) -> None:
        """Begin with a list or a watch: one line is logged for all its malformed objects."""
        self._is_logged = False

    def takes(self, obj: Any) -> bool:
        """Tell whether an object may be kept; if not, count it."""
        if self._accept is None or self._accept(obj):
            return True

        self._refuse("%s sent one of %s that cannot be read")
        return False

    def leave_out(self, key: str) -> None:
        """Count an object that is too large to be read."""
        self._refuse(paging.TOO_LARGE, key)

    def _refuse(self, text: str, *what: str) -> None:
        cluster, plural = self._client.name, self._kind.plural
        metrics.MALFORMED_OBJECTS.labels(cluster, plural).inc()
        if not self._is_logged:
            self._is_logged = True
            log.warning(text, cluster, plural, *what)

    async def filter(self, items: Objects) -> Objects:
        """Return the objects of a whole list that may be kept, and forget earlier events."""
        self._size = self._values = 0
        if self._accept is None:
            return items

        kept: Objects = []
        for start in range(0, len(items), BATCH):
            kept += filter(self.takes, items[start : start + BATCH])
            if start + BATCH < len(items):
                await asyncio.sleep(0)

        return kept

    def add_event(self, size: int, values: int) -> None:
        """Count an event; Gone, which leads to a list, if all since the last list are too large."""
        if self.limit is None:
            return

        self._size += size
        self._values += values
        if self._size > self.limit.size // 2 or self._values > self.limit.values // 2:
            raise Gone(410, "Expired", "the events since the last list are too large")
