"""Watches objects of one kind in a target: all at once or, where that is refused, by namespace.

A source may list the Secrets of a whole cluster only if its ClusterSource gives it all namespaces.
One that selects namespaces lets it list those of each single one, and nobody tells it which these
are. So it tries all at once. When that is denied it looks into each namespace that it knows of for
what may be left there, and watches one from the moment at which something is wanted there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Final, Protocol

from vnode.api import objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import Denied, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import answer_limits
from vnode.kube.informer import Informer
from vnode.kube.transport import METADATA_LIST
from vnode.runtime.certs import renewal
from vnode.runtime.keyed_tasks import Run
from vnode.runtime.link import Link

RETRY: Final = 5.0
"""Seconds until a namespace may be asked for again that was denied, if something is wanted there;
by itself it is after that time, doubling to `_LONGEST`."""
_LONGEST: Final = 40.0


class MakeInformer(Protocol):
    """Makes an informer of a namespace, None for all; `ends_denied` is the informer's own."""

    def __call__(self, namespace: str | None, *, ends_denied: bool) -> Informer:
        """Make one, with its subscribers."""


async def has_none(link: Link, kind: Kind, selector: str, namespace: str = "") -> bool:
    """Tell whether the target has no such object, by one request; VnodeError if that fails.

    The answer has the metadata of one object at most, and is decoded at once. API servers write
    those of none as null, since Go does so with a list that was never filled.
    """
    path = kind.path(namespace or link.target.namespace or None)
    query = {"labelSelector": selector, "limit": "1"}
    bound = answer_limits.SMALL
    page = await link.client.request("GET", path, query=query, accept=METADATA_LIST, bound=bound)
    return isinstance(page, dict) and "items" in page and page["items"] in (None, [])


class RemoteInformer:
    """Knows the objects of one kind in the target of a link, once `follow` was called.

    `start` starts tasks that live as long as the link. `listed` is called with a namespace, "" for
    all, of which all is known now, or known to be denied. `known` returns the namespaces to look
    into.
    """

    def __init__(
        self,
        link: Link,
        kind: Kind,
        selector: str,
        make: MakeInformer,
        *,
        start: Callable[[Run, str], None],
        listed: Callable[[str], None],
        known: Callable[[Link], Iterable[str]],
        clock: Clock,
    ) -> None:
        self._link = link
        self._kind = kind
        self._selector = selector
        self._make = make
        self._start = start
        self._listed = listed
        self._known = known
        self._clock = clock
        self._name = f"{kind.plural}-{link.node_name}"
        self._everywhere = make(
            link.target.namespace or None, ends_denied=not link.target.namespace
        )
        self._local: dict[str, Informer] = {}
        self._again: dict[str, asyncio.Event] = {}  # of those, set to ask again now
        self._denied_at: dict[str, float] = {}  # when (monotonic) the last answer was a denial
        self._is_split = False  # whether it is watched by namespace

    def at(self, namespace: str) -> Informer | None:
        """Return the informer of a namespace; None if that one is not watched yet."""
        return self._local.get(namespace) if self._is_split else self._everywhere

    def get(self, key: str) -> Object | None:
        """Return the object of that key, if it is known."""
        informer = self.at(objects.split_key(key)[0])
        return informer.store.get(key) if informer else None

    def values(self) -> Iterator[Object]:
        """Iterate over all that is known; more may become known meanwhile."""
        found = list(self._local.values()) if self._is_split else [self._everywhere]
        return chain.from_iterable(list(informer.store.values()) for informer in found)

    def is_listed(self, namespace: str) -> bool:
        """Tell whether all is known of a namespace."""
        informer = self.at(namespace)
        return informer is not None and informer.synced.is_set()

    def failure(self, namespace: str) -> VnodeError | None:
        """Return why a namespace is not listed; None if it is, or may yet be."""
        informer = self.at(namespace)
        if informer is None or informer.synced.is_set():
            return None

        failure = informer.failure
        is_forbidden = isinstance(failure, Denied) and failure.status == HTTPStatus.FORBIDDEN
        if not is_forbidden or self._link.target.namespace:
            return failure

        is_denied = namespace in self._denied_at and not self._may_be_given(namespace)
        return failure if self._is_split and is_denied else None

    def awaits(self, namespace: str) -> bool:
        """Tell whether a namespace is watched by itself, and is not, or may be asked for again."""
        is_known = namespace in self._local and not self._may_be_given(namespace)
        return self._is_split and not is_known

    def _may_be_given(self, namespace: str) -> bool:
        """Tell whether a namespace was denied a while ago."""
        denied_at = self._denied_at.get(namespace)
        return denied_at is not None and self._clock.monotonic() - denied_at >= RETRY

    def follow(self) -> None:
        """Begin to watch."""
        self._start(self._run, self._name)
        self._start(self._tell_of_refusal, f"answer-{self._name}")

    def follow_in(self, namespace: str) -> None:
        """Begin to watch a namespace, where they are watched one by one."""
        if not self.awaits(namespace):
            return

        if namespace in self._local:
            del self._denied_at[namespace]
            self._again[namespace].set()
        else:
            self._link.namespaces.add(namespace)
            self._local[namespace] = self._make(namespace, ends_denied=True)
            self._start(partial(self._run_in, namespace), f"{self._name}-{namespace}")

    async def _run(self) -> None:
        try:
            await renewal.follow(self._everywhere, partial(self._listed, ""))
        except* Denied:
            self._is_split = True

        self._listed("")
        left = {objects.namespace(obj) for obj in self._everywhere.store.values()}
        for namespace in sorted({*left, *self._known(self._link)}):
            if namespace in left or await self._may_have(namespace):
                self.follow_in(namespace)

    async def _run_in(self, namespace: str) -> None:
        """Watch a namespace, and ask again after a while whenever it is denied."""
        delay, again = RETRY, asyncio.Event()
        self._again[namespace] = again
        while True:
            again.clear()
            try:
                await renewal.follow(self._local[namespace], partial(self._listed, namespace))
            except* Denied:
                self._denied_at[namespace] = self._clock.monotonic()
                self._listed(namespace)  # who waits is told

            await happens_within(again, delay)
            self._denied_at.pop(namespace, None)
            delay = min(2 * delay, _LONGEST)

    async def _may_have(self, namespace: str) -> bool:
        try:
            return not await has_none(self._link, self._kind, self._selector, namespace)
        except Denied:
            return False  # nor may anything be done about it
        except VnodeError:
            return True

    async def _tell_of_refusal(self) -> None:
        """Have those who wait look at the failure, unless namespaces are tried one by one now."""
        await self._everywhere.answered.wait()
        is_split = isinstance(self._everywhere.failure, Denied) and not self._link.target.namespace
        if not self._everywhere.synced.is_set() and not is_split:
            self._listed("")
