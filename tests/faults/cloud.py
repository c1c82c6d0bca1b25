"""A cloud controller of the source, and the cloud: it deletes Nodes, and loses several at once.

A cloud controller deletes Nodes that are not ready and that its cloud does not know, every few
seconds; now and then somebody deletes one that is ready. Their Targets are there all the time, so
each is made anew, with what people had written on it, and its pods do not notice. In some steps the
ways to all targets break at once, for longer than targets are probed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from tests import kit
from tests.faults.harness import Harness
from tests.faults.plan import SOURCE, TARGETS, Fault, Step, Trouble
from tests.faults.snapshot import Violation, virtual_node
from vnode.api import kinds, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object

_LABEL: Final = "example.com/kept"
_TAINT: Final[Object] = {"key": _LABEL, "effect": "PreferNoSchedule"}
_PERIOD: Final = 2.5  # seconds between two looks; a cloud controller takes twice as long
_CAPRICE: Final = 0.1  # chance of a Node that is ready to be deleted at a look
_ALL_LOST: Final = 0.15  # of all steps
_LONGER: Final = 30.0  # seconds: the targets are found lost, and hasty pods are replaced
_RULE: Final = "a Node that is deleted while its Target exists is made anew as it was"


class CloudController:
    """Acts by dice of its own, so that the steps of a seed stay the same."""

    def __init__(self, harness: Harness, dice: random.Random) -> None:
        self.deleted = 0
        self._harness = harness
        self._dice = dice
        self._marked: set[str] = set()  # names of Nodes

    def faults(self, step: Step) -> tuple[Fault, ...]:
        """Draw what breaks in a step beside its own faults: the ways to all targets, if any.

        Not where one target is to show that it is as fast as ever while another is lost.
        """
        if self._dice.random() >= _ALL_LOST or any(a.timed_on for a in step.actions):
            return ()

        at = round(self._dice.uniform(0, 3), 1)
        return tuple(Fault(Trouble.FREEZE, f"{SOURCE}>{name}", at, _LONGER) for name in TARGETS)

    async def run(self, step: Step) -> None:
        """Delete Nodes until cancelled, unless the agents of the source cannot see to them.

        A single agent that ends while a Node is deleted cannot know what it had; and pods whose
        node is missing for a minute are deleted by Kubernetes.
        """
        while not any(fault.clusters == {SOURCE} for fault in step.faults):
            with suppress(VnodeError):
                await self._look()

            await asyncio.sleep(_PERIOD)

    async def _look(self) -> None:
        source = self._harness.source
        for target in TARGETS:
            try:
                node = await source.get(kinds.NODES, virtual_node(target))
            except NotFound:
                continue

            if objects.labels(node).get(_LABEL) is None and not objects.is_terminating(node):
                node = await self._mark(node)

            ready = (objects.condition(node, "Ready") or {}).get("status") == "True"
            if not ready or self._dice.random() < _CAPRICE:
                await source.discard(kinds.NODES, node)
                self.deleted += 1

    async def _mark(self, node: Object) -> Object:
        """Write on a Node what people write: nobody but them may take it off."""
        taints = objects.spec(node).get("taints") or []
        others = [taint for taint in taints if taint["key"] != _LABEL]
        body = {
            "metadata": {
                "resourceVersion": objects.resource_version(node),
                "labels": {_LABEL: "true"},
            },
            "spec": {"taints": [*others, _TAINT]},
        }
        name = objects.name(node)
        marked = await self._harness.source.patch(kinds.NODES, name, body)
        self._marked.add(name)
        return marked

    async def end(self, removed: Collection[str]) -> list[Violation]:
        """Tell which Nodes are not as they were; `removed` are targets that were removed."""
        self._marked -= set(map(virtual_node, removed))
        wanted = sorted(self._marked)
        until = time.monotonic() + kit.PATIENCE
        while (wrong := await self._wrong(wanted)) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(1)

        return [Violation(_RULE, name) for name in wrong]

    async def _wrong(self, names: list[str]) -> list[str]:
        found = []
        for name in names:
            try:
                node = await self._harness.source.get(kinds.NODES, name)
            except NotFound:
                found.append(f"{name} is missing")
                continue

            keys = [taint["key"] for taint in objects.spec(node).get("taints") or ()]
            if _LABEL not in keys or _LABEL not in objects.labels(node):
                found.append(f"{name} has lost the taint or the label of people: {keys}")

        return found
