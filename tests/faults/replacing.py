"""Replaces a target's cluster by the other target's amid faults, and puts it back after them.

Both Targets lead to one cluster meanwhile. `vnode replace-target` is killed on its way and run
again, as often as it takes. In order, no pod may run twice. A cluster that is given up as lost is
one that the source cannot reach: its pods run on there, beside those that replace them, until an
administrator deletes what is left of the source in it. Nothing may be left in either story where
its Target does not lead.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hack.fleetlib.errors import FleetError
from tests import kit
from tests.faults import freezing
from tests.faults.harness import Harness
from tests.faults.plan import SOURCE, TARGETS, Step, Wish
from tests.faults.snapshot import virtual_node
from tests.faults.targets import NAMESPACE
from tests.faults.watching import FROM_SOURCE
from vnode.api import kinds, objects
from vnode.api.errors import VnodeError

SECONDS: Final = 150.0  # for which an administrator tries
_SHARE: Final = 0.3  # of all steps in which it may be
_LOST: Final = 0.5  # of these
_DRAIN: Final = "20s"  # after which an administrator loses patience with budgets
_AGAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class ReplaceAct:
    """A target is replaced; the command is killed after some seconds."""

    target: str
    at: float
    killed_after: float
    lost: bool = False

    @property
    def way(self) -> str:
        """The fault proxy by which the source reaches the cluster that is replaced."""
        return f"{SOURCE}>{self.target}"

    @property
    def other(self) -> str:
        """The cluster that takes its place."""
        (other,) = set(TARGETS) - {self.target}
        return other

    def __str__(self) -> str:
        how = "lost target" if self.lost else "target"
        return f"+{self.at:.1f}s replace {how} {self.target}, killed after {self.killed_after:.1f}s"


def draw(dice: random.Random, step: Step, wish: Wish) -> ReplaceAct | None:
    """Draw whether a target is replaced in a step; not beside what else is about targets.

    Nor where times are measured, or pods have one target only: those could not move on.
    """
    act = ReplaceAct(
        dice.choice(TARGETS),
        round(dice.uniform(0, 8), 1),
        dice.uniform(1, 10),
        lost=dice.random() < _LOST,
    )
    drawn = dice.random() < _SHARE
    about_targets = any(action.target or action.timed_on for action in step.actions)
    bound = any(workload.on for workload in wish.workloads.values())
    return act if drawn and not about_targets and not bound and not freezing.crowd(wish) else None


class Replacer:
    """Acts by dice of its own, so that the steps of a seed stay the same.

    `remove` is told of a target whose pods may end from then on.
    """

    def __init__(
        self, harness: Harness, dice: random.Random, remove: Callable[[str], None]
    ) -> None:
        self.done: Counter[str] = Counter()
        self._harness = harness
        self._dice = dice
        self._remove = remove
        self._act: ReplaceAct | None = None  # of the step; until all is put back

    def draw(self, step: Step, wish: Wish) -> ReplaceAct | None:
        """Draw what happens in the next step."""
        self._act = draw(self._dice, step, wish)
        return self._act

    async def act(self, act: ReplaceAct) -> None:
        """Begin with it, and be killed."""
        await asyncio.sleep(act.at)
        self._remove(act.target)
        if act.lost:
            self._harness.fault_proxies[act.way].freeze()

        error = await self._run(act, act.other, act.killed_after, lost=act.lost)
        self.done["killed" if error is None else "ended"] += 1

    async def put_back(self) -> None:
        """Go on to the end, and then have each Target be its own cluster again.

        A cluster that is lost was back for a moment, when all faults were mended.
        """
        if (act := self._act) is None:
            return

        if act.lost:
            await self._give_up(act)
        else:
            await self._persist(act, act.other)

        await self._persist(act, act.target)
        self._act = None

    async def _give_up(self, act: ReplaceAct) -> None:
        way = self._harness.fault_proxies[act.way]
        way.freeze()
        await self._persist(act, act.other, lost=True)
        way.freeze(False)
        await self._delete_leftovers(act.target)

    async def _persist(self, act: ReplaceAct, cluster: str, *, lost: bool = False) -> None:
        until, error = time.monotonic() + SECONDS, ""
        while time.monotonic() < until:
            error = await self._run(act, cluster, SECONDS, lost=lost) or ""
            if not error:
                self.done["lost" if lost else "replaced"] += 1
                return

            if "drain did not complete" in error:
                self.done["impatient"] += 1
                await self._delete_pods(act.target)

            await asyncio.sleep(_AGAIN)

        raise FleetError(f"{act.target} is not {cluster} within {SECONDS:g} s: {error}")

    async def _delete_leftovers(self, target: str) -> None:
        """Delete what the source has in a cluster that it has given up, as the command says to.

        A creation that was held up on the way may come after the others were looked for.
        """
        client = self._harness.clients[target]
        while left := await client.list(kinds.POD_CHAPERONS, NAMESPACE, label_selector=FROM_SOURCE):
            for chaperon in left:
                await client.discard(kinds.POD_CHAPERONS, chaperon)

            former = {objects.uid(chaperon) for chaperon in left}
            await kit.until(
                client,
                kinds.POD_CHAPERONS,
                lambda there, former=former: not former & {objects.uid(o) for o in there.values()},
                seconds=SECONDS,
                namespace=NAMESPACE,
                label_selector=FROM_SOURCE,
            )

    async def _run(
        self, act: ReplaceAct, cluster: str, seconds: float, *, lost: bool
    ) -> str | None:
        """Run the command; return why it failed, "" if it did not, None if it was killed."""
        fleet = self._harness.fleet
        command = (
            *(
                sys.executable,
                "-m",
                "vnode",
                "replace-target",
                act.target,
                "--namespace",
                NAMESPACE,
            ),
            *(
                "--source",
                str(fleet.kubeconfig(SOURCE)),
                "--target",
                str(fleet.kubeconfig(cluster)),
            ),
            *("--server", self._harness.urls[f"{SOURCE}>{cluster}"], "--cluster-name", SOURCE),
            *("--force", "--delete-emptydir-data", "--timeout", _DRAIN),
            *("--max-evictions-per-minute", "0"),
            *(("--lost",) if lost else ()),
        )
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            async with asyncio.timeout(seconds):
                _out, error = await process.communicate()
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

        return "" if process.returncode == 0 else error.decode()[-1000:] or "failed"

    async def _delete_pods(self, target: str) -> None:
        """End what budgets protect: they have nowhere else to go."""
        node = f"spec.nodeName={virtual_node(target)}"
        with suppress(VnodeError):
            for pod in await self._harness.source.list(kinds.PODS, NAMESPACE, field_selector=node):
                await self._harness.source.discard(kinds.PODS, pod)
