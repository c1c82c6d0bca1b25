"""What the dashboard looks at: stores that somebody keeps, and who wants to hear of changes.

The agent has these stores anyway; `vnode dashboard` keeps its own. Informers call `note`, which
wakes the streams of open pages; a board is made when a page is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, ConfigError, Denied, Unreachable
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.dashboard import view_model
from vnode.dashboard.view_model import PodFilter, ViewModel
from vnode.insight import collecting, measuring, status_text
from vnode.insight.facts import Facts
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source import candidates
from vnode.pods.source.candidates import CandidateState
from vnode.runtime.links import Link, Links
from vnode.targets import model

_MEASURING: Final = 2.0  # seconds that a page waits for the metrics API
_OLD: Final = 1.0  # seconds that a board is shown, if nothing has changed
_STORIES: Final = 4  # that are collected at once: each asks every target


@dataclass(frozen=True, slots=True)
class Stores:
    """Where things are found. `pods` may give pods that are no proxies; they are left out."""

    targets: tuple[Informer, ...]
    sources: tuple[Informer, ...]
    nodes: Informer
    pods: Callable[[], Iterable[Object]]

    @property
    def informers(self) -> tuple[Informer, ...]:
        """All that may fail on their own."""
        return (*self.targets, *self.sources, self.nodes)


class Subscriber:
    """One open page; `changed` is set when it should be shown anew."""

    def __init__(self, pod: str) -> None:
        self.changed = asyncio.Event()
        self._pod = pod

    def hear(self, pod: str) -> None:
        """A pod has changed, or ("") something that may concern all pages."""
        if pod in ("", self._pod) or not self._pod:
            self.changed.set()


class LiveModel:
    """Boards and facts on demand, and a way to hear when they have changed."""

    def __init__(
        self,
        client: Client,
        cluster: str,
        stores: Stores,
        links: Links,
        *,
        agent_namespace: str,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self.cluster = cluster  # what it is called on the pages
        self._client = client
        self._stores = stores
        self._links = links
        self._agent_namespace = agent_namespace
        self._listeners: set[Subscriber] = set()
        self._version = 0  # grows with each change
        self._view: tuple[int, ViewModel] | None = (
            None  # the last one, and the version that it shows
        )
        self._making = asyncio.Lock()
        self._telling = asyncio.Semaphore(_STORIES)
        self._used: dict[str, Resources] = {}  # by virtual node
        self._measured: float | None = None  # when, by the monotonic clock
        for informer in stores.informers:
            informer.subscribe(lambda _old, _new: self.note())

        links.subscribe(self._linked, lambda _link: self.note())

    def note(self, pod: str = "") -> None:
        """That pod (by its key) has changed, or something that may concern all."""
        self._version += 1
        for listener in self._listeners:
            listener.hear(pod)

    def note_pod(self, old: Object | None, new: Object | None) -> None:
        """A subscriber for informers of pods."""
        self.note(objects.key(new or old or {}))

    def _linked(self, link: Link) -> None:
        self.note()
        link.on_health(self.note)
        link.chaperons.subscribe(lambda old, new: self.note(_parent(new or old or {})))

    @contextmanager
    def listening(self, pod: str = "") -> Iterator[Subscriber]:
        """Hear of changes; only of those that concern a pod (by its key), if one is given."""
        listener = Subscriber(pod)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def look(self) -> ViewModel:
        """What is to be seen now. Those who ask at the same time are shown the same."""
        async with self._making:
            await self._measure()
            version, now = self._version, self.clock.now()
            if self._view is None or self._view[0] != version or self._is_old(self._view[1]):
                self._view = (version, await asyncio.to_thread(view_model.make, self._seen(), now))

            return self._view[1]

    def _is_old(self, known: ViewModel) -> bool:
        return (self.clock.now() - known.now).total_seconds() > _OLD

    async def facts(self, namespace: str, name: str) -> Facts:
        """All about one pod; ConfigError if it is not there."""
        async with self._telling:
            return await collecting.collect(
                self._client,
                name,
                namespace,
                agent_namespace=self._agent_namespace,
                clock=self.clock,
                connect=self._connect,
            )

    @asynccontextmanager
    async def _connect(self, _local: Client, target: Object) -> AsyncIterator[Client]:
        """The connection that is there already."""
        link = self._links.get(model.key_of(target).node_name)
        if link is None:
            raise ConfigError("not connected to it")

        yield link.client

    def _seen(self) -> PodFilter:
        stores = self._stores
        return PodFilter(
            self.cluster,
            [target for informer in stores.targets for target in informer.store.values()],
            list(stores.nodes.store.values()),
            [source for informer in stores.sources for source in informer.store.values()],
            [pod for pod in stores.pods() if status_text.is_proxy(pod)],
            self._candidates(),
            self._used,
            tuple(self._notices()),
        )

    def _candidates(self) -> Mapping[str, Mapping[str, CandidateState]]:
        """By the UID of the pod: what each virtual node has said."""
        found: dict[str, dict[str, CandidateState]] = {}
        for link in self._links:
            for uid, chaperon in link.candidates():
                found.setdefault(uid, {})[link.node_name] = candidates.read(chaperon, 0).state

        return found

    def _notices(self) -> Iterator[str]:
        for informer in self._stores.informers:
            if isinstance(informer.failure, Denied):
                yield f"{informer.kind.kind}s are not shown: no right to read them"
            elif informer.failure is not None:
                yield f"{informer.kind.kind}s cannot be read now: {informer.failure}"

        for informer in self._stores.targets:
            for target in informer.store.values():
                key = model.key_of(target)
                if self._links.get(key.node_name) is None:
                    yield f"{key} is not connected from here: candidates there are not shown"

    async def _measure(self) -> None:
        now = self.clock.monotonic()
        if self._measured is not None and now - self._measured < measuring.RESOLUTION:
            return

        self._measured = now
        try:
            async with asyncio.timeout(_MEASURING):
                used = await measuring.of_nodes(self._client)
        except (ApiError, Unreachable, TimeoutError):
            used = {}

        if used != self._used:
            self._used = used
            self._version += 1


def _parent(chaperon: Object) -> str:
    return parent_key(chaperon) if chaperon else ""
