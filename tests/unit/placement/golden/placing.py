"""Scenarios of where pods begin, and of which go first: growth, overflow, rollouts, scaling in."""

from __future__ import annotations

from typing import Final

from tests.unit.placement.golden.scenario import ScenarioRun, scenario
from vnode.api.objects import Object

WEIGHTED: Final[Object] = {
    "mode": "Spread",
    "targets": [
        {"cluster": "c1", "weight": 40, "minReplicas": 2},
        {"cluster": "c2", "weight": 40, "minReplicas": 2},
        {"cluster": "c3", "weight": 20, "minReplicas": 2},
    ],
    "overflow": {"afterUnschedulableFor": "2m"},
}


@scenario(
    "A workload grows from one pod on: minimums first, tiers by priority, no more than a maximum.",
    {
        "mode": "Spread",
        "targets": [
            {"cluster": "c1", "priority": 1, "weight": 3, "minReplicas": 1, "maxReplicas": 4},
            {"cluster": "c2", "priority": 1, "weight": 1, "maxReplicas": 3},
            {"cluster": "c3", "minReplicas": 1},
        ],
    },
    c1=20,
    c2=20,
    c3=20,
)
async def growth(run: ScenarioRun) -> None:
    for replicas in (1, 2, 4, 6, 9, 12):
        await run.scale(replicas, then=30)

    await run.tell_costs()
    await run.scale(3, then=30)


@scenario(
    "Without weights, clusters have pods by what is free in them.",
    {"mode": "Spread"},
    c1=12,
    c2=6,
    c3=3,
)
async def capacity(run: ScenarioRun) -> None:
    await run.scale(7, then=30)
    await run.scale(14, then=30)
    await run.grow(c3=12, then=10)
    await run.scale(21, then=200)
    await run.tell_costs()
    await run.scale(9, then=30)


@scenario(
    "Pods that full clusters do not take overflow after the threshold, and leave placeholders.",
    {**WEIGHTED, "failback": {"mode": "Never"}},
    c1=6,
    c2=6,
    c3=14,
)
async def overflow(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.scale(15, then=30)
    await run.scale(20, then=60)
    await run.grow(c1=7, then=90)
    await run.grow(c2=7, then=600)
    await run.scale(19, then=60)


@scenario(
    "Each threshold asks another cluster, up to the limit; whichever starts the pod has it.",
    {
        "mode": "Fill",
        "targets": [{"cluster": name} for name in ("c1", "c2", "c3", "c4")],
        "overflow": {"afterUnschedulableFor": "1m", "maxCandidates": 3},
        "failback": {"mode": "Never"},
    },
    c1=1,
    c2=0,
    c3=0,
    c4=5,
)
async def overflow_by_tiers(run: ScenarioRun) -> None:
    await run.scale(3, then=90)
    await run.grow(c2=1, then=90)
    await run.grow(c3=1, then=30)
    await run.scale(4, then=300)


@scenario(
    "A Deployment is rolled out where all have room: each revision is planned by itself.",
    WEIGHTED,
    c1=20,
    c2=20,
    c3=20,
)
async def rollout(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    run.start_after(10)
    await run.roll_out(then=90)
    await run.scale(12, then=30)
    await run.tell_costs()
    await run.roll_out(then=25)
    await run.scale(8, then=90)


@scenario(
    "A Deployment is rolled out where clusters are full: new pods wait for old ones to go.",
    WEIGHTED,
    c1=6,
    c2=6,
    c3=4,
)
async def rollout_without_room(run: ScenarioRun) -> None:
    await run.scale(15, then=30)
    run.start_after(10)
    await run.roll_out(then=600)
    await run.tell_costs()


@scenario(
    "After an overflow a Deployment shrinks by deletion costs to its plan, and grows again.",
    {**WEIGHTED, "failback": {"mode": "Never"}},
    c1=6,
    c2=6,
    c3=14,
)
async def scale_in(run: ScenarioRun) -> None:
    await run.scale(20, then=180)
    await run.tell_costs()
    await run.scale(15, then=60)
    await run.tell_costs()
    await run.scale(10, then=60)
    await run.scale(6, then=60)
    await run.tell_costs()
    await run.scale(18, then=60)
    await run.scale(14, then=90)
