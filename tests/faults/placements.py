"""Placement policies of a random run: applies, changes and deletes them beside a step's faults.

Vnode may move the pods of a workload that has a policy at any time, so that nobody is to say of
these that they are the very same afterwards. Once all is well again a Rebalance has them moved to
where they are planned, and then they have to be there.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from typing import Final

from tests.faults import placement_acts
from tests.faults.harness import Harness
from tests.faults.placement_acts import PolicyAct
from tests.faults.plan import Wish
from tests.faults.snapshot import Violation
from tests.faults.targets import NAMESPACE
from vnode.api import kinds, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object

_AGAIN: Final = 0.5  # seconds until a request that failed is sent again
_RULE: Final = "workloads are where their policies plan them"
_NO_ROOM: Final = "room"
"""In the reason of a Rebalance: a pod was moved in vain while something was broken, and vnode
believes for ten minutes that there is no room where it was to go."""


_STEADY: Final = 60.0
"""Seconds after which what a Rebalance lacks is believed."""


class Placements:
    """Acts by dice of its own, so that the steps of a seed stay the same."""

    def __init__(self, harness: Harness, dice: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._harness = harness
        self._dice = dice
        self._specs: dict[str, Object] = {}  # of the policies that there are
        self._rebalance = ""  # the name of the step's
        self._steps = 0
        self._moved = 0
        self._lacks_since: float | None = None

    async def begin(self) -> None:
        """Remove what an earlier run has left."""
        for kind in (kinds.PLACEMENT_POLICIES, kinds.REBALANCES):
            for obj in await self._harness.source.list(kind, NAMESPACE):
                await self._harness.source.discard(kind, obj)

    def draw(self, wish: Wish) -> list[PolicyAct]:
        """Draw what happens in the next step."""
        self._rebalance, self._lacks_since = "", None
        self._steps += 1
        return placement_acts.draw(self._dice, wish, self._specs)

    def movable(self, acts: list[PolicyAct]) -> frozenset[str]:
        """Return the workloads whose pods vnode may move in this step."""
        return frozenset((*self._specs, *(act.name for act in acts)))

    def drained(self) -> dict[str, frozenset[str]]:
        """Return the targets that each policy drains, if only in part, by the workload's name."""
        return {name: placement_acts.drained(spec) for name, spec in self._specs.items()}

    async def act(self, act: PolicyAct) -> None:
        """Do it, however often that takes."""
        await asyncio.sleep(act.at)
        while True:
            with suppress(NotFound):
                try:
                    await self._apply(act)
                except NotFound:
                    raise
                except VnodeError:
                    await asyncio.sleep(_AGAIN)
                    continue

            return

    async def _apply(self, act: PolicyAct) -> None:
        source, kind = self._harness.source, kinds.PLACEMENT_POLICIES
        if act.spec is None:
            self._specs.pop(act.name, None)
            await source.delete(kind, act.name, NAMESPACE)
            self.done["deleted"] += 1
        else:
            known = act.name in self._specs
            self._specs[act.name] = act.spec
            await source.apply(kind, act.object(NAMESPACE), manager="faults")
            self.done["changed" if known else "applied"] += 1

    async def end(self) -> None:
        """Remove all policies."""
        for name in list(self._specs):
            await self.act(PolicyAct(0.0, name, None))

        await self.begin()

    async def violations(self) -> list[Violation]:
        """Ask for what is wrong once all else is right; at first that is a Rebalance to come."""
        source = self._harness.source
        policies = await source.list(kinds.PLACEMENT_POLICIES, NAMESPACE)
        if not policies:
            return []

        progress = await self._progress()
        if progress not in ("Complete", _NO_ROOM):
            return [Violation(_RULE, f"rebalance {self._rebalance}: {progress}")]

        pods = await source.list(kinds.PODS, NAMESPACE)
        nodes = await source.list(kinds.NODES)
        found = []
        for policy in policies:
            group = placement_acts.group_of(policy, pods, nodes)
            is_rebalanced = progress == "Complete"
            wrong = placement_acts.wrong_in(policy, group, is_rebalanced=is_rebalanced)
            found += [Violation(_RULE, what) for what in wrong]

        if not found:
            self.done[f"at rest: {progress}"] += 1
            self.done["pods moved"] += self._moved

        return found

    async def _progress(self) -> str:
        """Return how far the step's Rebalance is; begin it if there is none yet."""
        source = self._harness.source
        if not self._rebalance:
            await self._remove_rebalances()
            self._rebalance = f"step-{self._steps}"
            metadata = {"name": self._rebalance, "namespace": NAMESPACE}
            body = {"metadata": metadata, "spec": {"maxConcurrent": "50%"}}
            await source.create(kinds.REBALANCES, body, NAMESPACE)

        status = objects.status(await source.get(kinds.REBALANCES, self._rebalance, NAMESPACE))
        phase, message = str(status.get("phase") or ""), str(status.get("message") or "")
        lacks_room = f": no {_NO_ROOM} in" in message or f"has {_NO_ROOM} for" in message
        if phase == "Progressing" and lacks_room:
            now = time.monotonic()
            self._lacks_since = now if self._lacks_since is None else self._lacks_since
            return _NO_ROOM if now - self._lacks_since > _STEADY else f"{phase} {message}"

        self._lacks_since = None
        self._moved = int(status.get("moved") or 0)
        return "Complete" if phase == "Complete" else f"{phase} {message}"

    async def _remove_rebalances(self) -> None:
        for obj in await self._harness.source.list(kinds.REBALANCES, NAMESPACE):
            await self._harness.source.discard(kinds.REBALANCES, obj)
