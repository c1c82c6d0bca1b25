"""Scenarios of pods that run and are moved: failback, drain, rebalance, reschedule, failover."""

from __future__ import annotations

from typing import Final

from tests.unit.placement.golden.placing import WEIGHTED
from tests.unit.placement.golden.scenario import ScenarioRun, scenario
from vnode.api.objects import Object

TURNED: Final[list[Object]] = [
    {"cluster": "c1", "weight": 20, "minReplicas": 2},
    {"cluster": "c2", "weight": 40, "minReplicas": 2},
    {"cluster": "c3", "weight": 40, "minReplicas": 2},
]
SINGLE: Final[Object] = {"mode": "Single"}


@scenario(
    "Pods that overflowed go back to where their placeholders could start, one after the other.",
    {**WEIGHTED, "failback": {"mode": "Placeholder"}},
    c1=6,
    c2=6,
    c3=14,
)
async def failback_by_placeholders(run: ScenarioRun) -> None:
    await run.scale(20, then=200)
    await run.grow(c1=7, then=8)
    await run.grow(c1=6, then=100)
    await run.grow(c1=7, then=200)
    await run.grow(c1=8, c2=8, then=400)


@scenario(
    "Pods that overflowed go back when there seems to have been room for long enough.",
    {**WEIGHTED, "failback": {"mode": "Probe", "maxConcurrent": "10%"}},
    c1=6,
    c2=6,
    c3=14,
)
async def failback_by_probes(run: ScenarioRun) -> None:
    await run.scale(20, then=200)
    await run.grow(c1=8, then=200)
    await run.grow(c1=6, then=200)
    await run.grow(c1=8, c2=8, then=400)
    await run.tell_costs()


@scenario(
    "A cluster that says too much is tried less and less, until it has more room than it had.",
    {**WEIGHTED, "failback": {"mode": "Probe", "stabilization": "1m"}},
    c1=6,
    c2=6,
    c3=20,
)
async def failback_in_vain(run: ScenarioRun) -> None:
    await run.scale(20, then=200)
    await run.claim("c1", 2, then=3600)
    await run.claim("c1", None, then=60)
    await run.grow(c1=8, then=300)
    await run.grow(c1=9, then=300)


@scenario(
    "Pods go up to better clusters, also to a middle one, as many at once as there is room for.",
    {
        "mode": "Fill",
        "targets": [{"cluster": name} for name in ("c1", "c2", "c3")],
        "overflow": {"afterUnschedulableFor": "10s"},
        "failback": {"mode": "Placeholder", "stabilization": "5s", "maxConcurrent": "50%"},
    },
    c1=2,
    c2=2,
    c3=10,
)
async def failback_up_the_tiers(run: ScenarioRun) -> None:
    await run.scale(6, then=90)
    await run.grow(c2=4, then=90)
    await run.grow(c1=3, then=90)
    await run.grow(c1=8, then=90)


@scenario(
    "A drain moves pods one by one, waits for room and for a disruption budget, and ends.",
    WEIGHTED,
    c1=6,
    c2=5,
    c3=2,
)
async def drain(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.change_policy(drain=[{"cluster": "c1", "maxReplicas": 1}], then=120)
    run.refuse_evictions(3)
    await run.grow(c3=6, then=120)
    await run.grow(c2=6, then=60)
    await run.change_policy(drain=None, then=600)
    await run.scale(12, then=30)


@scenario(
    "A change of the policy moves nothing; a Rebalance does so once, and says how it went.",
    WEIGHTED,
    c1=20,
    c2=20,
    c3=20,
)
async def rebalance(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.change_policy(targets=TURNED, then=300)
    await run.rebalance("now", ttlSecondsAfterFinished=100, then=300)
    await run.change_policy(targets=WEIGHTED["targets"], then=60)
    await run.rebalance("faster", policy="web", maxConcurrent="30%", then=60)
    await run.rebalance("again", then=60)


@scenario(
    "A Rebalance fails where there is no room, and for workloads that are not there.",
    WEIGHTED,
    c1=20,
    c2=20,
    c3=3,
)
async def rebalance_without_room(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.change_policy(targets=TURNED, then=30)
    missing = [{"kind": "StatefulSet", "name": "db"}]
    await run.rebalance("unknown", workloads=missing, then=60)
    await run.rebalance("now", then=900)
    await run.grow(c3=9, then=300)


@scenario(
    "A policy that reschedules moves pods when it has changed, and stops when it does no more.",
    {**WEIGHTED, "reschedule": {"when": ["PolicyChanged"]}},
    c1=20,
    c2=20,
    c3=3,
)
async def reschedule(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.change_policy(targets=TURNED, then=120)
    await run.change_policy(reschedule=None, then=30)
    await run.grow(c3=9, then=120)
    await run.change_policy(reschedule={"when": ["PolicyChanged"]}, then=120)
    await run.change_policy(targets=WEIGHTED["targets"], then=120)


@scenario(
    "A cluster that comes to a policy by its labels has pods moved to it if the policy says so.",
    {
        "mode": "Spread",
        "clusters": {"selector": {"matchLabels": {"pool": "web"}}},
        "targets": [{"selector": {"matchLabels": {"pool": "web"}}, "weight": 1}],
        "reschedule": {"when": ["ClusterJoined", "LabelsChanged"]},
    },
    c1=20,
    c2=20,
    c3=20,
)
async def reschedule_by_labels(run: ScenarioRun) -> None:
    await run.label("c1", pool="web", then=1)
    await run.label("c2", pool="web", then=1)
    await run.scale(6, then=60)
    await run.label("c3", pool="web", then=120)
    await run.label("c1", pool="none", then=120)


@scenario(
    "A workload that is kept together leaves a drained cluster as a whole, when all have room.",
    SINGLE,
    c1=10,
    c2=0,
    c3=0,
)
async def single(run: ScenarioRun) -> None:
    await run.scale(4, then=30)
    await run.grow(c2=3, c3=2, then=10)
    await run.change_policy(drain=[{"cluster": "c1"}], then=120)
    await run.grow(c3=5, then=5)
    await run.scale(5, then=60)
    await run.change_policy(drain=None, then=120)
    await run.scale(6, then=90)


@scenario(
    "A Rebalance finds a cluster for a workload that has outgrown its own.",
    {**SINGLE, "failback": {"maxConcurrent": "50%"}},
    c1=4,
    c2=0,
)
async def single_outgrows_its_cluster(run: ScenarioRun) -> None:
    await run.scale(4, then=30)
    await run.grow(c2=5, then=10)
    await run.scale(6, then=150)
    await run.rebalance("too-early", then=700)
    await run.grow(c2=10, then=30)
    await run.rebalance("now", then=120)


@scenario(
    "Pods of a lost cluster are replaced as fast as allowed; when it is back, those that run stay.",
    {
        **WEIGHTED,
        "failback": {"mode": "Probe", "stabilization": "2m"},
        "failover": {"tolerationSeconds": 60, "maxEvictionsPerMinute": 6},
    },
    c1=20,
    c2=6,
    c3=14,
)
async def failover(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.lose("c1", then=40)
    await run.find("c1", then=60)
    await run.lose("c1", then=150)
    await run.scale(11, then=30)
    await run.find("c1", then=600)
    await run.rebalance("back", then=60)


@scenario(
    "Without `failover`, pods of a lost cluster are replaced after five minutes, as by Kubernetes.",
    {**WEIGHTED, "failback": {"mode": "Never"}},
    c1=20,
    c2=4,
    c3=4,
)
async def failover_as_by_kubernetes(run: ScenarioRun) -> None:
    await run.scale(10, then=30)
    await run.lose("c2", then=400)
    await run.change_policy(failover={"purge": "Never"}, then=60)
    await run.lose("c3", then=600)
    await run.find("c2", then=30)
    await run.find("c3", then=120)
