"""Makes view models from stores, and notifies the streams of open pages of changes.

The agent has these stores anyway; `vnode dashboard` keeps its own. Informers call `notify`, which
wakes the streams of open pages; a view model is made when a page is requested. All who asked for
one before it was made get the same, however often something changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.dashboard import notices, view_model
from vnode.dashboard.changes import ChangeRecord
from vnode.dashboard.paced_turns import PacedTurns
from vnode.dashboard.slow_reads import SlowReads
from vnode.dashboard.view_model import ModelInputs, ViewModel
from vnode.insight import collecting, status_text
from vnode.insight.facts import Facts
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source import candidates
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets import model

_MAX_AGE: Final = 1.0  # seconds for which a view model is reused if nothing has changed
_MAX_STORIES: Final = 4  # collected at once: each asks every target


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores to read. `pods` may return pods that are no proxies; they are left out."""

    targets: tuple[Informer, ...]
    sources: tuple[Informer, ...]
    nodes: Informer
    pods: Callable[[], Iterable[Object]]
    policies: tuple[Informer, ...] = ()
    """Placement policies."""
    overrides: tuple[Informer, ...] = ()
    """Override policies."""

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The informers whose failures all pages report."""
        return (*self.targets, *self.sources, self.nodes)

    @property
    def of_policies(self) -> tuple[Informer, ...]:
        """The informers whose failures the page of policies reports."""
        return (*self.policies, *self.overrides)


class Subscriber:
    """One open page; `changed` is set when it should be loaded again."""

    def __init__(self, pod: str) -> None:
        self.changed = asyncio.Event()
        self._pod = pod

    def notify(self, pod: str) -> None:
        """Set `changed` if the page concerns that pod; "" concerns all pages."""
        if pod in ("", self._pod) or not self._pod:
            self.changed.set()


class LiveModel:
    """Makes view models and reads facts on demand, and notifies subscribers of changes.

    With `reads_events`, Events of `namespace` (None: of all) tell what changed as well.
    """

    def __init__(
        self,
        client: Client,
        cluster: str,
        stores: Stores,
        links: Links,
        *,
        agent_namespace: str,
        clock: Clock,
        reads_events: bool = False,
        namespace: str | None = None,
    ) -> None:
        self.clock = clock
        self.cluster = cluster  # the name on the pages
        self.turns = PacedTurns(clock)  # of all that is computed for pages
        self._client = client
        self._stores = stores
        self._links = links
        self._agent_namespace = agent_namespace
        self._subscribers: set[Subscriber] = set()
        self._version = 0  # grows with each change
        self._view: tuple[int, ViewModel] | None = None  # the last one, with its version
        self._lock = asyncio.Lock()
        self._collecting = asyncio.Semaphore(_MAX_STORIES)
        self._record = ChangeRecord(clock)
        self._slow = SlowReads(
            client,
            agent_namespace,
            clock=clock,
            reads_events=reads_events,
            namespace=namespace,
        )
        for informer in stores.targets:
            informer.subscribe(self._record.on_target)

        for informer in (*stores.informers, *stores.of_policies):
            informer.subscribe(lambda _old, _new: self.notify())

        links.subscribe(self._on_link, lambda _link: self.notify())

    def notify(self, pod: str = "") -> None:
        """Notify pages that this pod (by its key) has changed, or all pages ("")."""
        self._version += 1
        for subscriber in self._subscribers:
            subscriber.notify(pod)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Notify pages of a change that an informer of pods has seen."""
        self._record.on_pod(old, new)
        self.notify(objects.key(objects.latest(old, new)))

    def _on_link(self, link: Link) -> None:
        self.notify()
        link.on_health(self.notify)
        link.chaperons.subscribe(lambda old, new: self.notify(_parent(objects.latest(old, new))))

    @contextmanager
    def subscription(self, pod: str = "") -> Iterator[Subscriber]:
        """Subscribe to changes, or only to those that concern a pod (by its key)."""
        subscriber = Subscriber(pod)
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)

    async def view(self) -> ViewModel:
        """Return a view model of now, or of up to `_MAX_AGE` ago if nothing has changed since."""
        wanted, oldest = self._version, self.clock.now() - timedelta(seconds=_MAX_AGE)
        async with self._lock:
            self._version += await self._slow.read()
            if self._view is None or self._view[0] < wanted or self._view[1].now < oldest:
                self._view = await self._make()

            return self._view[1]

    async def _make(self) -> tuple[int, ViewModel]:
        async with self.turns.turn():
            version, inputs = self._version, self._inputs()
            return version, await asyncio.to_thread(view_model.make, inputs, self.clock.now())

    async def facts(self, namespace: str, name: str) -> Facts:
        """Read the facts about one pod; ConfigError if it does not exist."""
        async with self._collecting:
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
        """Yield the client of the present link to a Target; ConfigError if there is none."""
        link = self._links.get(model.key_of(target).node_name)
        if link is None:
            raise ConfigError("not connected to it")

        yield link.client

    def _inputs(self) -> ModelInputs:
        stores, slow, chaperons = self._stores, self._slow.readings, self._chaperons()
        states = {
            uid: {node: candidates.read(chaperon, 0).state for node, chaperon in of_pod.items()}
            for uid, of_pod in chaperons.items()
        }
        unread = notices.of_informers(stores.informers)
        return ModelInputs(
            self.cluster,
            [target for informer in stores.targets for target in informer.store.values()],
            list(stores.nodes.store.values()),
            [source for informer in stores.sources for source in informer.store.values()],
            [pod for pod in stores.pods() if status_text.is_proxy(pod)],
            states,
            slow.used,
            (*unread, *notices.of_links(stores.targets, self._links)),
            [policy for informer in stores.policies for policy in informer.store.values()],
            [policy for informer in stores.overrides for policy in informer.store.values()],
            tuple(notices.of_policies(stores.of_policies)),
            {link.node_name: (link.summary, not link.lacks_vnode) for link in self._links},
            chaperons,
            slow.lease,
            slow.events,
            self._record.changes,
        )

    def _chaperons(self) -> Mapping[str, Mapping[str, Object]]:
        """Return the chaperons of pods, by the UID of the pod and the virtual node.

        Those of bound pods are left out: each has one, and no page shows it.
        """
        found: dict[str, dict[str, Object]] = {}
        pending = (pod for pod in self._stores.pods() if not objects.node_name(pod))
        pods = {objects.uid(pod): objects.key(pod) for pod in pending}
        for link in self._links:
            for uid, chaperon in link.candidates(pods):
                found.setdefault(uid, {})[link.node_name] = chaperon

        return found


def _parent(chaperon: Object) -> str:
    return parent_key(chaperon) if chaperon else ""
