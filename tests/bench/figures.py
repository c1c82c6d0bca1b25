"""What a run measures, as it is written to the JSON file, and the arithmetic on it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

PLAIN, VNODE = "plain", "vnode"
_AGENT = " agent"  # ends the names of their processes


class Quantiles(msgspec.Struct, frozen=True):
    """Seconds, by nearest rank."""

    p50: float
    p90: float
    p99: float
    max: float


def quantiles(values: Sequence[float]) -> Quantiles:
    """Return the quantiles of at least one value."""
    ranked = sorted(values)

    def at(share: float) -> float:
        return round(ranked[max(0, -(-int(share * 100) * len(ranked) // 100) - 1)], 4)

    return Quantiles(at(0.5), at(0.9), at(0.99), round(ranked[-1], 4))


class ProcessUsage(msgspec.Struct, frozen=True):
    """What one process took in a phase: CPU seconds, and MiB of RSS at the phase's end."""

    cpu: float
    rss: float


class Phase(msgspec.Struct, frozen=True):
    """One burst, or pods one at a time (`burst` is False).

    Times begin before each pod's create request is sent and end when the watch shows the change.
    """

    system: str
    burst: bool
    pods: int
    bound: Quantiles
    running: Quantiles
    bound_rate: float
    """Pods a second, from the first create to the last binding."""
    running_rate: float
    create_rate: float
    """Pods a second, from the first create to the last answer to one."""
    requests: dict[str, dict[str, float]]
    """Cluster -> `VERB resource` -> requests a pod, without watches and the idle background."""
    processes: dict[str, ProcessUsage]
    bench_cpu: float
    """CPU seconds of the benchmark itself, which shares the machine."""
    others: float
    """Cores that programs took which belong neither to the fleet nor to the benchmark."""
    seconds: float
    """From the first create until the API servers were quiet again."""
    deleted: float
    """Seconds from the one request that deletes all pods until the last is gone."""
    delegates: dict[str, int]
    """Target -> delegates bound there."""
    lost: list[str]
    """Pods without a running delegate in the target whose virtual node they are bound to."""
    doubled: list[str]
    """Pods for which more than one delegate was ever bound."""

    @property
    def name(self) -> str:
        """`vnode 300`, `plain 1 x 30`."""
        return f"{self.system} {self.pods}" if self.burst else f"{self.system} 1 x {self.pods}"

    @property
    def requests_per_pod(self) -> float:
        """Of all API servers together."""
        return sum(sum(kinds.values()) for kinds in self.requests.values())

    @property
    def agents_cpu(self) -> float:
        """CPU seconds of the agents of all clusters."""
        return sum(one.cpu for name, one in self.processes.items() if name.endswith(_AGENT))


class BenchmarkRun(msgspec.Struct, frozen=True):
    """One run of the benchmark."""

    started: str
    cores: int
    python: str
    vnode: str
    kubernetes: str
    nodes: int
    """kwok nodes in each cluster; two targets together have twice as many."""
    idle: dict[str, dict[str, float]]
    """Cluster -> `VERB resource` -> requests a second while nothing happens."""
    phases: list[Phase]
    failure: str = ""
    """Why there are no more phases; empty if all were run."""
    real: list[Phase] = []
    """Pods at once on a real kubelet, in a fleet of its own: plain, and elected."""
    real_failure: str = ""
    """Why there are none of them; empty if both were run, or nobody asked."""

    @property
    def is_good(self) -> bool:
        """All phases were run, and no pod was lost or bound twice."""
        failed = self.failure or self.real_failure
        return not failed and not any(p.lost or p.doubled for p in (*self.phases, *self.real))

    def bursts(self, system: str, pods: int) -> list[Phase]:
        """Return the bursts of that size, in the order in which they were run."""
        return [p for p in self.phases if p.system == system and p.burst and p.pods == pods]

    def rate(self, system: str, pods: int) -> float | None:
        """Return the pods bound a second, the mean of all bursts of that size.

        Return None if there was no burst of that size.
        """
        rates = [phase.bound_rate for phase in self.bursts(system, pods)]
        return sum(rates) / len(rates) if rates else None


class Aim(msgspec.Struct, frozen=True):
    """What the project promises itself for two cores, and what came out."""

    text: str
    limit: float
    measured: float
    most: bool
    """The limit is the most allowed, else the least."""

    @property
    def reached(self) -> bool:
        """Whether the measured value keeps the limit."""
        return self.measured <= self.limit if self.most else self.measured >= self.limit


SAME: float = 0.95
"""Rates that differ by less than that are the same: two bursts in a row differ as much."""


def aims(run: BenchmarkRun) -> list[Aim]:
    """Return the aims that the phases of this run allow to judge."""
    vnode = [phase for phase in run.phases if phase.system == VNODE]
    found = [
        Aim("one pod at a time, create -> bound, p50 in s", 0.15, phase.bound.p50, most=True)
        for phase in vnode
        if not phase.burst
    ]
    singles = [p.bound.p50 for p in run.phases if not p.burst and p.system == PLAIN]
    found += [
        Aim("the same, of a plain pod's", 1.5, phase.bound.p50 / singles[0], most=True)
        for phase in vnode
        if singles and not phase.burst
    ]
    small, large, plain = run.rate(VNODE, 300), run.rate(VNODE, 1000), run.rate(PLAIN, 300)
    if small and plain:
        found.append(Aim("rate of 300, of plain", 0.3, small / plain, most=False))
    if small and large:
        found.append(Aim("rate of 1000, of the rate of 300", SAME, large / small, most=False))
    bursts = [phase.requests_per_pod for phase in vnode if phase.burst]
    if bursts:
        found.append(Aim("requests a pod, worst burst", 9, max(bursts), most=True))
    found += [
        Aim("agents, ms of CPU a pod of 300", 7, 1000 * phase.agents_cpu / phase.pods, most=True)
        for phase in run.bursts(VNODE, 300)
    ]
    found += [
        Aim("requests a pod, on a real kubelet", 22, phase.requests_per_pod, most=True)
        for phase in run.real
        if phase.system == VNODE
    ]
    wrong = sum(len(phase.lost) + len(phase.doubled) for phase in (*run.phases, *run.real))
    return [*found, Aim("pods lost or bound twice", 0, wrong, most=True)]
