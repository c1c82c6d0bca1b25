"""Drives the rounds of a run: inputs of all kinds at once, then the invariants."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz import (
    answers,
    calls,
    canary,
    chaperons,
    kubeconfigs,
    measuring,
    pod_annotations,
    reviews,
    services,
    streams,
)
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import FuzzEnvironment
from tests.fuzz.figures import Figures
from tests.fuzz.inputs import InputKind, Spoiling

KINDS: Final = tuple(
    module.KIND
    for module in (
        kubeconfigs,
        answers,
        streams,
        chaperons,
        reviews,
        calls,
        services,
        pod_annotations,
    )
)
_SHOWN: Final = 3000  # characters of an input
_NAMES: Final = re.compile(r"[a-z]+-[0-9]+-[0-9]+")  # of inputs


@dataclass(frozen=True, slots=True)
class FuzzSettings:
    """What to run; no `only` means all kinds, no `inputs` all of a round."""

    seed: int
    seconds: float
    rounds: range
    only: tuple[str, ...] = ()
    inputs: tuple[int, ...] = ()
    goes_on: bool = False  # after findings
    callback_limit: float = measuring.LIMIT  # seconds of CPU time

    @property
    def kinds(self) -> list[InputKind]:
        """The kinds of inputs to be fed."""
        return [kind for kind in KINDS if not self.only or kind.name in self.only]

    def repeated(self, first: int, end: int) -> str:
        """Write the command that repeats some rounds."""
        parts = [f"--seed {self.seed} --rounds {first}:{end}"]
        parts += [f"--only {name}" for name in self.only]
        parts += [f"--inputs {','.join(map(str, self.inputs))}"] if self.inputs else []
        return f'make fuzz FUZZ="{" ".join(parts)}"'


class FuzzRun:
    """One run of rounds; `found` is what was wrong, `failed` the first round in which it was."""

    def __init__(self, settings: FuzzSettings, folder: Path) -> None:
        self.found: list[FuzzFinding] = []
        self.failed: int | None = None
        self.shown: list[str] = []  # inputs that findings name
        self.lines: list[str] = []
        self._settings = settings
        dice = random.Random(settings.seed)
        self._env = FuzzEnvironment(folder, dice, callback_limit=settings.callback_limit)
        self._figures = Figures()
        self._spoilers: dict[str, Spoiling] = {}

    async def run(self) -> None:
        """Run until the time is over, or something is wrong."""
        settings, env = self._settings, self._env
        async with env.running():
            self._spoilers = {kind.name: kind.begin(env) for kind in settings.kinds if kind.begin}
            self.found += [*await canary.check(env), *env.findings()]
            end = time.monotonic() + settings.seconds
            for number in settings.rounds:
                if (self.found and not settings.goes_on) or time.monotonic() > end:
                    break

                found = await self._round(number)
                if found and self.failed is None:
                    self.failed = number

                self.found += found

            self.lines = self._figures.lines(env)

    async def _round(self, number: int) -> list[FuzzFinding]:
        """Feed the inputs of one round; return what was wrong."""
        env, fed = self._env, dict[str, object]()
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(self._feed(kind, number, fed), name=f"feed {kind.name}")
                for kind in self._settings.kinds
            ]

        found = [finding for task in feeding for finding in task.result()]
        for name, spoiler in self._spoilers.items():
            self._figures.inputs[name] += spoiler.count
            spoiler.count = 0

        found += await canary.check(env)
        found += env.findings()
        for kind in self._settings.kinds:
            kind.clean(env)

        env.forget_past()
        self._figures.rounds += 1
        text = " ".join(finding.text for finding in found)
        named = set(_NAMES.findall(text))
        self.shown += [f"{name}: {made!r}"[:_SHOWN] for name, made in fed.items() if name in named]
        found += await self._figures.count_series(env)
        return [*found, *self._figures.weigh(env)]

    async def _feed(
        self, kind: InputKind, number: int, fed: dict[str, object]
    ) -> list[FuzzFinding]:
        indexes = iter(self._settings.inputs or range(kind.count))
        async with asyncio.TaskGroup() as group:
            for _lane in range(kind.lanes):
                group.create_task(self._feed_lane(kind, number, indexes, fed))

        return await kind.settle(self._env)

    async def _feed_lane(
        self, kind: InputKind, number: int, indexes: Iterator[int], fed: dict[str, object]
    ) -> None:
        spoiler = self._spoilers.get(kind.name)
        for index in indexes:
            dice = random.Random(f"{self._settings.seed}/{number}/{kind.name}/{index}")
            if spoiler is not None:
                spoiler.dice = random.Random(dice.random())

            name = f"{kind.name}-{number}-{index}"
            fed[name] = await kind.feed(self._env, dice, name)
            self._figures.inputs[kind.name] += spoiler is None
            await asyncio.sleep(0)


def distinct(found: list[FuzzFinding]) -> list[FuzzFinding]:
    """Leave out those that end like another one: they come from the same line of code."""
    return list({(each.rule, each.text.strip()[-200:]): each for each in reversed(found)}.values())
