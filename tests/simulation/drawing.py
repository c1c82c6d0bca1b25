"""Draws the schedule of a seed. Pure.

Most schedules are small: most defects show with two pods and a fault, thousands of such schedules
can be run in a minute, and one that fails can be read. Some are larger, for what takes many pods.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.simulation import override_policies
from tests.simulation import policies as policy_drawing
from tests.simulation.schedule import (
    SOURCE,
    SPAN,
    TARGETS,
    ClusterFault,
    ClusterTrouble,
    PodAction,
    PodVerb,
    Schedule,
    SimulatedWorkload,
    WorkloadOwner,
)

_ONE_TARGET: Final = 0.2
"""The share of schedules in which a pod that does not fit has nowhere else to go."""
_CALM: Final = 0.3
"""The share of schedules without faults, in which more is promised."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there may be in a schedule, each from least to most, and in what share of them."""

    share: float
    pods: tuple[int, int]
    actions: tuple[int, int]
    faults: tuple[int, int]
    overflowing: tuple[int, int]
    """The pods of a Deployment that is larger than one of its targets."""


SIZES: Final = (
    Size(0.7, pods=(1, 2), actions=(1, 4), faults=(1, 2), overflowing=(2, 3)),
    Size(0.18, pods=(2, 4), actions=(1, 6), faults=(1, 3), overflowing=(3, 4)),
    Size(0.12, pods=(2, 6), actions=(1, 8), faults=(1, 5), overflowing=(4, 6)),
)


def draw(seed: int, policies_share: float = policy_drawing.SHARE) -> Schedule:
    """Draw the schedule of a seed; of those with two targets that share has placement policies."""
    dice = random.Random(seed)
    size = dice.choices(SIZES, [each.share for each in SIZES])[0]
    latency = dice.choice((0.001, 0.005, 0.02, 0.1, 0.4))
    moments = _Moments(dice, latency)
    faults = 0 if dice.random() < _CALM else dice.randint(*size.faults)
    has_one = random.Random(f"targets {seed}").random() < _ONE_TARGET
    targets = TARGETS[:1] if has_one else TARGETS
    nodes = {t: tuple(dice.randint(1, 4) for _ in range(dice.randint(1, 2))) for t in targets}
    workloads = tuple(_workloads(dice, moments, dice.randint(*size.pods), targets))
    schedule = Schedule(
        seed,
        latency,
        nodes,
        workloads,
        tuple(_action(dice, moments) for _ in range(dice.randint(*size.actions))),
        tuple(_fault(dice, moments, (SOURCE, *targets)) for _ in range(faults)),
        dice.choice((1, 1, 2)),
        overrides=override_policies.draw(seed, _Moments(random.Random(seed), latency).draw),
    )
    if has_one:  # there is nothing to place
        return schedule

    named = [*(workload.name for workload in workloads), "web"]
    policies = policy_drawing.draw(seed, named, TARGETS, moments.draw, policies_share)
    if any(workload.runs for workload in workloads):
        policies = replace(policies, steady=False)  # pods that end make room for others

    left = () if policies.calm else schedule.faults
    schedule = replace(schedule, policies=policies, faults=left)
    if policies.moved:
        return _moving(schedule, dice.randint(*size.overflowing))

    if not policies.tight:
        return schedule

    return _overflowing(schedule, policies.tight, dice.randint(*size.overflowing))


def _moving(schedule: Schedule, count: int) -> Schedule:
    """Add a workload of so many pods that owners replace, and room for all of them anywhere."""
    owner = (WorkloadOwner.REPLICA_SET, WorkloadOwner.STATEFUL_SET)[schedule.seed % 3 == 0]
    more = SimulatedWorkload(
        "web", owner, 0.0, count=count, farewell=(0.1, 2.0, 8.0)[schedule.seed // 3 % 3]
    )
    nodes: dict[str, tuple[int, ...]] = dict.fromkeys(schedule.nodes, (8, 8))
    return replace(schedule, nodes=nodes, workloads=(*schedule.workloads, more))


def _overflowing(schedule: Schedule, tight: str, count: int) -> Schedule:
    """Add a Deployment of so many pods, of which the tight target has room for one."""
    more = SimulatedWorkload("web", WorkloadOwner.REPLICA_SET, 0.0, count=count)
    nodes: dict[str, tuple[int, ...]] = dict.fromkeys(schedule.nodes, (4, 4))
    nodes[tight] = (1,)
    return replace(schedule, nodes=nodes, workloads=(*schedule.workloads, more))


class _Moments:
    """When things happen: mostly soon after each other, so that they meet before they are over."""

    def __init__(self, dice: random.Random, latency: float) -> None:
        self._dice = dice
        self._busy = [0.0, *(dice.uniform(0, SPAN) for _ in range(2))]
        self._apart = latency * 10 + 0.1  # about as long as a pod takes to be bound

    def draw(self) -> float:
        """Draw one."""
        if self._dice.random() < 0.3:
            return self._dice.uniform(0, SPAN)

        after = self._dice.expovariate(1 / self._apart)
        return min(self._dice.choice(self._busy) + after, SPAN)


def _workloads(
    dice: random.Random, moments: _Moments, pods: int, targets: Sequence[str]
) -> list[SimulatedWorkload]:
    left: int = pods
    found: list[SimulatedWorkload] = []
    while left > 0:
        owner, count = dice.choice(list(WorkloadOwner)), min(left, dice.randint(1, 3))
        may_choose = (
            owner is not WorkloadOwner.STATEFUL_SET
        )  # no finalizer keeps the name of such a pod
        ends = owner is WorkloadOwner.JOB or (owner is WorkloadOwner.USER and dice.random() < 0.5)
        found.append(
            SimulatedWorkload(
                f"{owner.value[0]}{len(found)}",
                owner,
                moments.draw() if dice.random() < 0.5 else 0.0,
                count,
                dice.choice((1, 1, 1, 2)),
                dice.choice((0.5, 5.0, 20.0)) if ends else 0.0,
                dice.choice((0.0, 0.3)) if ends else 0.0,
                dice.choice((30, 30, 5, 1)),
                dice.choice((0.1, 2.0, 8.0)),
                dice.choice(targets) if may_choose and dice.random() < 0.15 else "",
            )
        )
        left -= count

    return found


def _action(dice: random.Random, moments: _Moments) -> PodAction:
    return PodAction(dice.choice(list(PodVerb)), moments.draw(), dice.randrange(100))


def _fault(dice: random.Random, moments: _Moments, clusters: Sequence[str]) -> ClusterFault:
    trouble, cluster = dice.choice(list(ClusterTrouble)), dice.choice(clusters)
    at, seconds = moments.draw(), dice.choice((1.0, 5.0, 15.0, 40.0)) * dice.random()
    match trouble:
        case ClusterTrouble.ERRORS:
            share, status = dice.choice((0.1, 0.5, 1.0)), dice.choice((500, 500, 409, 429, 403))
            return ClusterFault(trouble, cluster, at, seconds, share, status)
        case ClusterTrouble.LOST_ANSWERS | ClusterTrouble.LATE_WRITES:
            return ClusterFault(trouble, cluster, at, seconds, dice.choice((0.1, 0.5)))
        case ClusterTrouble.RESTART:
            return ClusterFault(trouble, cluster, at, seconds * dice.choice((0.0, 1.0)))
        case ClusterTrouble.FREEZE | ClusterTrouble.STOP | ClusterTrouble.SLOW:
            return ClusterFault(trouble, cluster, at, seconds)
        case _:
            return ClusterFault(trouble, cluster, at)
