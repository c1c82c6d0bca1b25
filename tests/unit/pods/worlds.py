"""A source and its targets in memory, for tests of the proxy scheduler in simulated time.

Everything above the API servers is real: links, stores, framework, queue, cache. A target does with
candidates what its agent and its scheduler would, as far as the test says.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from scheduler_plugins import defaults
from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, Conflict, NotFound, VnodeError
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Handler, Informer
from vnode.kube.store import Store
from vnode.pods.chaperons import Parent
from vnode.pods.source import scheduler
from vnode.pods.source.candidates import CandidateSettings
from vnode.pods.source.event_handlers import EventHandlers
from vnode.pods.source.scheduler import ProxyScheduler
from vnode.runtime.links import PARENT_UID_INDEX, Link, LinkHealth, Links, TargetKey
from vnode.scheduling import config, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.registry import Registry

Answer = Callable[["Target", Object], None]
"""What a target does about a new candidate."""


class Objects:
    """What an informer keeps, written by the test's clusters at once."""

    def __init__(self, index: str = "", values: Callable[[Object], list[str]] | None = None):
        self.store = Store({index: values} if values else {})
        self.synced = asyncio.Event()
        self.synced.set()
        self._handlers: Listeners[Object | None, Object | None] = Listeners()

    def subscribe(self, handler: Handler) -> None:
        self._handlers.add(handler)
        for obj in list(self.store.values()):
            handler(None, obj)

    def put(self, obj: Object) -> None:
        self._handlers.call(self.store.put(obj), obj)

    def remove(self, obj: Object) -> None:
        self._handlers.call(self.store.pop(objects.key(obj)), None)

    async def until(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        """Wait for changes until the condition holds."""
        changed = asyncio.Event()
        self.subscribe(lambda _old, _new: changed.set())
        async with asyncio.timeout(seconds):
            while not condition():
                changed.clear()
                await changed.wait()


def informer(found: Objects) -> Informer:
    return cast("Informer", found)


def rejects(target: Target, candidate: Object) -> None:
    """Its scheduler finds no place."""
    entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    target.change(candidate, status={"conditions": [{**entry, "message": "no room here"}]})


def reserves(target: Target, candidate: Object) -> None:
    """Its scheduler finds a place."""
    target.change(candidate, **{keys.IS_RESERVED: "true"})


def is_silent(_target: Target, _candidate: Object) -> None:
    """No scheduler runs there."""


class Target:
    """A target cluster and its connection; `requests` are those that it was asked."""

    def __init__(self, name: str, clock: Clock, answer: Answer = reserves, **room: str) -> None:
        self.answer = answer
        self.errors: list[VnodeError] = []  # of the next creations
        self.requests: list[tuple[str, float]] = []
        self.thawed = asyncio.Event()  # not set: requests hang
        self.thawed.set()
        self.taints: list[Object] = []
        self._clock = clock
        self._numbers = itertools.count()
        self.chaperons = Objects(
            PARENT_UID_INDEX, lambda c: [objects.labels(c).get(keys.PARENT_UID, "")]
        )
        self.summaries = Objects()
        self.set_room(**room)
        key = TargetKey("default", name)
        self.link = Link(
            key,
            cast("Client", self),
            chaperons=informer(self.chaperons),
            summaries=informer(self.summaries),
            health=LinkHealth(True, "Connected", "", clock.now()),
        )

    @property
    def node(self) -> str:
        return self.link.node_name

    def set_room(self, **room: str) -> None:
        """How much each node, of which it has one, has free."""
        free = {"pods": "1000", "cpu": "0", **room}
        annotations = {
            keys.AGENT_VERSION: "1",
            keys.FREE_RESOURCES: json.dumps({"sum": free, "largest": free}),
        }
        metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
        self.summaries.put({"metadata": metadata, "allocatable": free})

    def set_healthy(self, healthy: bool) -> None:
        message = "" if healthy else "it does not answer"
        self.link.set_health(LinkHealth(healthy, "Probed", message, self._clock.now()))

    def created(self) -> int:
        return sum(1 for verb, _when in self.requests if verb == "create")

    def candidate(self, pod: str) -> Object | None:
        return self.link.candidate(pod)

    def change(self, candidate: Object, status: Object | None = None, **annotations: str) -> None:
        """As its agent reports."""
        changed = copy.deepcopy(candidate)
        changed["metadata"]["annotations"] |= annotations
        if status is not None:
            changed["status"] = status

        self.chaperons.put(changed)

    def remove(self, candidate: Object) -> None:
        self.chaperons.remove(candidate)

    async def create(self, _kind: Any, obj: Object, *_args: Any, **_more: Any) -> Object:
        self.requests.append(("create", self._clock.monotonic()))
        await self._exchange()
        if self.errors:
            raise self.errors.pop(0)

        if objects.key(obj) in self.chaperons.store:
            raise AlreadyExists(409, "AlreadyExists", objects.key(obj))

        made = copy.deepcopy(obj)
        made["metadata"]["uid"] = f"{objects.name(obj)}-{next(self._numbers)}"
        self.chaperons.put(made)
        self.answer(self, made)
        return made

    async def discard(self, _kind: Any, obj: Object, **_more: Any) -> None:
        self.requests.append(("delete", self._clock.monotonic()))
        await self._exchange()
        present = self.chaperons.store.get(objects.key(obj))
        if present is not None and objects.uid(present) == objects.uid(obj):
            self.chaperons.remove(present)

    async def _exchange(self) -> None:
        await asyncio.sleep(0.01)
        await self.thawed.wait()


class Source:
    """The cluster that schedules; `said` are the messages of Events, by pod."""

    def __init__(self, clock: Clock, *targets: Target, plugins: Object | None = None) -> None:
        self.clock = clock
        self.targets = targets
        self.proxies = Objects()
        self.nodes = Objects()
        self.links = Links()
        self.said: dict[str, list[str]] = {}
        self.bound: dict[str, float] = {}  # by pod: when
        self.bringing: dict[str, float] = {}  # by node: how long it takes
        self.live: dict[str, Object] = {}  # pods that are newer than what the informer has
        profile = config.load({"profile": plugins or {}}).profile
        framework = registry.build(profile, Registry(defaults.PLUGINS), defaults.WEIGHTS, clock)
        self.queue = SchedulingQueue(
            clock,
            framework.queue_sort.sort_key,
            framework.registrations() | scheduler.REGISTRATIONS,
            pre_enqueue=framework.pre_enqueue,
        )
        cache = Cache()
        self._books = EventHandlers(informer(self.nodes), self.links, cache, self.queue)
        self.driver = ProxyScheduler(
            cast("Client", self),
            informer(self.proxies),
            self.links,
            Parent("c1", "uid-of-c1"),
            framework=framework,
            queue=self.queue,
            cache=cache,
            settings=CandidateSettings(),
            allowed=self._allow,
            bring=self._bring,
            renew=lambda _pod, _link: None,
            unconnected=self._books.unconnected,
            events=cast("EventRecorder", self),
            clock=clock,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        for target in self.targets:
            metadata = {"name": target.node, "labels": {"target": target.node}}
            self.nodes.put({"metadata": metadata, "spec": {"taints": target.taints}})
            self.links.add(target.link)

        self._books.open()
        task = asyncio.ensure_future(self.driver.run())
        try:
            yield
            assert not task.done(), task
        finally:
            task.cancel()
            await asyncio.wait([task])

    def add(self, name: str, *, cpu: str = "", **metadata: Any) -> None:
        """A proxy pod, as the webhook makes it; its UID is its name."""
        spec = metadata.pop("spec", {})
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        self.proxies.put(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
                "spec": {
                    "schedulerName": keys.PROXY_SCHEDULER,
                    "containers": [{"name": "main", "resources": resources}],
                    **spec,
                },
                "status": {"phase": "Pending"},
            }
        )

    def pod(self, name: str) -> Object:
        found = self.proxies.store.get(f"default/{name}")
        assert found is not None
        return found

    def node_of(self, name: str) -> str:
        return str(objects.spec(self.pod(name)).get("nodeName") or "")

    def change(self, name: str, **fields: Any) -> None:
        """`status` and the like are merged into the pod's."""
        pod = copy.deepcopy(self.pod(name))
        for field, value in fields.items():
            pod[field] = {**pod[field], **value}

        self.proxies.put(pod)

    async def until_bound(self, *names: str) -> None:
        await self.proxies.until(lambda: all(self.node_of(name) for name in names))

    async def until_said(self, name: str, text: str) -> None:
        """Until the pod's PodScheduled condition has that text."""

        def says() -> bool:
            return text in str(objects.condition(self.pod(name), "PodScheduled") or {})

        await self.proxies.until(says)

    async def create(self, _kind: Any, binding: Object, *_args: Any, **_more: Any) -> None:
        await asyncio.sleep(0.01)
        name = objects.name(binding)
        if self.node_of(name):
            raise Conflict(409, "Conflict", "it is bound")

        self.bound[name] = self.clock.monotonic()
        self.change(name, spec={"nodeName": binding["target"]["name"]})

    async def get(self, _kind: Any, name: str, _namespace: str) -> Object:
        await asyncio.sleep(0.01)
        return self.live.get(name) or self.pod(name)

    async def patch(
        self, _kind: Any, name: str, body: Object, *_args: Any, subresource: str = "", **_more: Any
    ) -> Object:
        await asyncio.sleep(0.01)
        if f"default/{name}" not in self.proxies.store:
            raise NotFound(404, "NotFound", name)

        if subresource == "status":
            self.change(name, status=body["status"])

        return self.pod(name)

    def event(self, about: Object, _type: str, _reason: str, message: str) -> None:
        self.said.setdefault(about["name"], []).append(message)

    async def _allow(self, _pod: Object) -> None:
        """No pod here came from another cluster."""

    async def _bring(self, _pod: Object, link: Link) -> str:
        await asyncio.sleep(self.bringing.get(link.node_name, 0.0))
        return ""
