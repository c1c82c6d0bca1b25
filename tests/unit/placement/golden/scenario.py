"""The steps of which scenarios are made: each is done, and written into the log.

`Scenario.record` runs one in simulated time, and always gives the same log: names take the place
of UIDs, nothing is drawn by chance, and nothing waits for the outside world.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import yaml

from tests.simulation import loop
from tests.unit.placement.golden.deployment import DeploymentEnvironment, number_of
from tests.unit.placement.golden.recording import GoldenLog
from vnode.api import keys, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object

FOLDER: Final = Path(__file__).parent


class ScenarioRun:
    """A scenario that is under way; see `DeploymentEnvironment` for what its steps do."""

    def __init__(self, env: DeploymentEnvironment) -> None:
        self.env = env
        self.log = GoldenLog(env)

    async def scale(self, replicas: int, *, then: float) -> None:
        """Have so many pods, and let that many seconds pass."""
        self.log.act(f"the Deployment is scaled to {replicas}")
        self.env.scale(replicas)
        await asyncio.sleep(then)

    async def roll_out(self, *, then: float) -> None:
        self.log.act("the Deployment is rolled out")
        self.env.roll_out()
        await asyncio.sleep(then)

    async def grow(self, *, then: float, **places: int) -> None:
        """Have clusters get room for so many, or lose it."""
        for name, count in places.items():
            self.log.act(f"{name} has room for {count}")
            self.env.room[name].grow(count)

        await asyncio.sleep(then)

    async def claim(self, name: str, free: int | None, *, then: float) -> None:
        """Have a cluster say that so many places are free; None: the truth."""
        said = "tells the truth again" if free is None else f"says that {free} places are free"
        self.log.act(f"{name} {said}")
        self.env.room[name].lies = free
        self.env.room[name].report_room()
        await asyncio.sleep(then)

    async def change_policy(self, *, then: float, **fields: Any) -> None:
        """Change fields of the policy's spec; None removes one."""
        for field, value in fields.items():
            text = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
            said = "is removed" if value is None else f"becomes {text.strip()}"
            self.log.act(f"{field} of the policy {said}")

        self.env.change_spec(**fields)
        await asyncio.sleep(then)

    async def rebalance(self, name: str, *, then: float, **spec: Any) -> None:
        text = yaml.safe_dump(spec, default_flow_style=True, width=1000, sort_keys=False)
        self.log.act(f"Rebalance {name} is created: {text.strip()}")
        self.env.rebalance(name, **spec)
        await asyncio.sleep(then)

    async def label(self, name: str, *, then: float, **labels: str) -> None:
        """Label the virtual node of a cluster."""
        told = ", ".join(f"{key}={value}" for key, value in labels.items())
        self.log.act(f"the virtual node of {name} is labeled {told}")
        self.env.label(name, **labels)
        await asyncio.sleep(then)

    async def lose(self, name: str, *, then: float) -> None:
        self.log.act(f"{name} does not answer any more")
        self.env.lose(name)
        await asyncio.sleep(then)

    async def find(self, name: str, *, then: float) -> None:
        self.log.act(f"{name} answers again")
        self.env.find(name)
        await asyncio.sleep(then)

    def start_after(self, seconds: float) -> None:
        """Have pods take so long to become ready."""
        self.log.act(f"pods are ready {seconds:g} s after they are bound")
        self.env.start_after = seconds

    def refuse_evictions(self, times: int) -> None:
        """Have a disruption budget allow no eviction for a while."""
        self.log.act(f"a disruption budget refuses the next {times} evictions")
        self.env.forbid(times)

    async def tell_costs(self) -> None:
        """Tell the deletion costs of pods, of those first that go first."""
        costs = defaultdict[str, list[tuple[int, int, str]]](list)
        for pod in self.env.live():
            name = objects.name(pod)
            cost = int(objects.annotations(pod).get(keys.POD_DELETION_COST, 0))
            place = self.env.names.get(objects.node_name(pod), "no cluster")
            costs[place].append((cost, number_of(name), name))

        for place, pods in sorted(costs.items()):
            told = ", ".join(f"{name} {cost}" for cost, _, name in sorted(pods))
            self.log.tell(f"deletion costs in {place}: {told}")

        await asyncio.sleep(1.5)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One golden log; `title` says what it shows, `rooms` how many pods each cluster takes."""

    name: str
    title: str
    rooms: Mapping[str, int]
    policy: Object
    steps: Callable[[ScenarioRun], Awaitable[None]]

    @property
    def path(self) -> Path:
        """Where its log is."""
        return FOLDER / f"{self.name}.log"

    def record(self) -> str:
        """Run it in simulated time; return the log."""
        with patch.object(random, "uniform", _middle):
            lines = loop.run(self._run())

        return "".join(f"{line}\n" for line in (*self._head(), *lines))

    def _head(self) -> list[str]:
        rooms = ", ".join(f"{name} for {count}" for name, count in self.rooms.items())
        spec = yaml.safe_dump(self.policy, default_flow_style=None, sort_keys=False, width=90)
        return [
            f"# {self.title}",
            f"# Pods of one CPU each; there is room in {rooms}. The spec of the PlacementPolicy:",
            *(f"#   {line}" for line in spec.splitlines()),
            "",
        ]

    async def _run(self) -> list[str]:
        env = DeploymentEnvironment(SystemClock(), self.rooms, self.policy)
        async with env.led():
            run = ScenarioRun(env)
            await self.steps(run)
            return run.log.lines


def _middle(least: float, most: float) -> float:
    """Return what is to be expected of a random number, so that delays are always the same."""
    return (least + most) / 2


def scenario(
    title: str, policy: Object, **rooms: int
) -> Callable[[Callable[[ScenarioRun], Awaitable[None]]], Scenario]:
    """Make a function the scenario of its name."""
    return lambda steps: Scenario(steps.__name__, title, rooms, policy, steps)
