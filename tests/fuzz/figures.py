"""Counts what a run has tried, and what the agents needed for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.fuzz import measuring
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import FuzzEnvironment

_WARM: Final = 3  # rounds after which memory is counted
_SERIES: Final = 2000  # lines by which an agent's metrics may grow
_MEMORY: Final = 64 << 20  # bytes by which an agent may grow, and once more with 10,000 inputs


@dataclass(slots=True)
class Figures:
    """What came of a run; `memory` and `series` have those of each agent after each round."""

    inputs: Counter[str] = field(default_factory=Counter)
    memory: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # inputs, bytes
    series: dict[str, list[int]] = field(default_factory=dict)  # lines of metrics
    rounds: int = 0

    async def count_series(self, env: FuzzEnvironment) -> list[FuzzFinding]:
        """Note how many metrics the agents have; tell which has more and more."""
        found = []
        for name, agent in env.agents.items():
            counts = self.series.setdefault(name, [])
            counts.append(await agent.series())
            if len(counts) > _WARM and counts[-1] > counts[_WARM - 1] + _SERIES:
                text = f"{name}: {counts[_WARM - 1]} to {counts[-1]} in {len(counts)} rounds"
                found.append(FuzzFinding("metrics are bounded", text))

        return found

    def weigh(self, env: FuzzEnvironment) -> list[FuzzFinding]:
        """Note the memory of all agents; tell which has grown with the inputs."""
        found = []
        for name, agent in env.agents.items():
            weights = self.memory.setdefault(name, [])
            weights.append((self.inputs.total(), agent.memory()))
            if len(weights) <= _WARM:
                continue

            (inputs, first), (now, last) = weights[_WARM - 1], weights[-1]
            if last - first > _MEMORY * (1 + (now - inputs) / 10_000):
                text = f"{name}: {first >> 20} to {last >> 20} MiB, {now - inputs} inputs"
                found.append(FuzzFinding("memory is bounded", text))

        return found

    def lines(self, env: FuzzEnvironment) -> list[str]:
        """Write them down."""
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.inputs.items()))
        lines = [f"fuzz: {self.inputs.total()} inputs in {self.rounds} rounds: {counts}"]
        for name, agent in env.agents.items():
            sizes = [size >> 20 for _inputs, size in self.memory.get(name, [])]
            shown = f"{sizes[0]} MiB first, {sizes[-1]} last, {max(sizes)} most" if sizes else "-"
            longest = max(agent.longest, measuring.FIRST) * 1000
            series = self.series.get(name, [0])
            lines.append(
                f"  agent of {name}: longest callback {longest:.0f} ms, memory {shown}, "
                f"{series[0]} lines of metrics first, {max(series)} most, "
                f"{agent.guarded} guarded errors"
            )

        reached = (f"{count} {what}" for what, count in sorted(env.reached.items()))
        requests = f"{env.rules.count.total()} requests of agents"
        return [*lines, f"  reached: {', '.join(reached)}; {requests}"]
