"""Pods of the benchmark as watches show them: when created, bound, running, and how often bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions
from vnode.runtime.supervisor import Supervisor

LABEL = "bench"
"""On every pod of the benchmark; on a delegate it has Admiralty's prefix."""
NAMESPACE = "default"


class Lost(VnodeError):
    """Not all pods came as far as they must, in time."""


@dataclass(slots=True)
class Track:
    """One pod; moments by the monotonic clock."""

    created: float
    answered: float = 0.0
    bound: float = 0.0
    running: float = 0.0
    uid: str = ""
    node: str = ""


@dataclass(slots=True)
class Tracks:
    """All pods that a phase has created, by name."""

    pods: dict[str, Track] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)  # not seen running yet
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, name: str) -> Track:
        """Note a pod, just before it is created."""
        self.left.add(name)
        self.pods[name] = Track(time.monotonic())
        return self.pods[name]

    def see(self, pod: Object) -> None:
        """Take in what the watch says."""
        track = self.pods.get(objects.name(pod))
        if track is None:
            return
        now = time.monotonic()
        track.uid, track.node = objects.uid(pod), objects.spec(pod).get("nodeName", "")
        if track.node and not track.bound:
            track.bound = now
        if objects.status(pod).get("phase") == "Running" and not track.running:
            track.running = now
            self.left.discard(objects.name(pod))
            self.moved.set()

    async def all_running(self, seconds: float) -> None:
        """Return when every pod that was begun has run; Lost if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while self.left:
                    self.moved.clear()
                    await self.moved.wait()
        except TimeoutError:
            some = ", ".join(sorted(self.left)[:3])
            raise Lost(f"{len(self.left)} pods do not run after {seconds:.0f} s: {some}") from None


@dataclass(slots=True)
class Delegates:
    """Every delegate that was ever seen bound: parent's UID -> delegate's UID -> target."""

    bound: dict[str, dict[str, str]] = field(default_factory=dict)

    def seer(self, target: str) -> Callable[[Object], None]:
        """Return what to call with each bound delegate of a target."""

        def see(pod: Object) -> None:
            parent = objects.labels(pod).get(keys.PARENT_UID, "")
            self.bound.setdefault(parent, {})[objects.uid(pod)] = target

        return see


async def start_watching(
    tasks: Supervisor,
    client: Client,
    see: Callable[[Object], None],
    *,
    label: str,
    field_selector: str = "",
) -> None:
    """Have `see` called with every version of the pods with that label, from this moment on."""
    selection = ListOptions(kinds.PODS, NAMESPACE, label, field_selector)
    _, version = await client.list_at(
        kinds.PODS, NAMESPACE, label_selector=label, field_selector=field_selector
    )
    tasks.start(_follow(client, selection, version, see), f"watch {client.name}")


async def _follow(
    client: Client, selection: ListOptions, version: str, see: Callable[[Object], None]
) -> None:
    while True:
        async with aclosing(watching.stream(client, selection, version)) as batches:
            async for batch in batches:
                for event in batch:
                    version = objects.resource_version(event.object)
                    if event.type in (watching.ADDED, watching.MODIFIED):
                        see(event.object)
