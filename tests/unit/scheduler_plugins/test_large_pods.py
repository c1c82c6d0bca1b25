"""A pod as large as an API server takes, made to be costly, holds no scheduling cycle up.

To add a row, write a pod into `LARGE`. A pod that is refused is told why.
"""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from tests.unit.scheduling.builders import pod
from tests.unit.scheduling.gpu_targets import add_target, make_framework
from vnode.api import objects, resources
from vnode.api.objects import Object
from vnode.scheduling.cache import Cache

TARGETS: Final = 50
ALLOWED: Final = 0.25
"""Seconds of the processor; those that were mended took 0.4 to 4.9."""
ZONE: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _claims(count: int) -> list[Object]:
    return [{"name": f"c{n}", "resourceClaimName": f"c{n}"} for n in range(count)]


def _asking(**requests: str) -> list[Object]:
    return [{"name": "c", "resources": {"requests": requests}}]


def _term(key: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


_SPREAD: Final = {"topologyKey": ZONE, "maxSkew": 1000, "labelSelector": {}}
_TERMS: Final = [*[_term("absent")] * 99, _term(ZONE)]

LARGE: Final[dict[str, tuple[Object, str]]] = {
    "containers": (
        {
            "containers": [
                {"name": f"c{n}", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
                for n in range(8_000)
            ]
        },
        "Insufficient cpu, Insufficient memory",
    ),
    "devices": (
        {"containers": _asking(**{f"example.com/r{n}": "1" for n in range(20_000)})},
        "over 250 resources: use 250 at most",
    ),
    "resources": (
        {"containers": _asking(**{f"hugepages-{n}Mi": "1" for n in range(20_000)})},
        "over 250 resources: use 250 at most",
    ),
    "claims": ({"resourceClaims": _claims(6_000)}, "has 6000 terms: use 100 at most"),
    "claims of many": ({"resourceClaims": _claims(100)}, 'ResourceClaim "c0" is used in target t0'),
    "tolerations": (
        {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(20_000)]},
        "use 100 at most",
    ),
    "spread over nodes that affinity chooses": (
        {
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": _TERMS}}},
            "topologySpreadConstraints": [{**_SPREAD, "whenUnsatisfiable": "DoNotSchedule"}] * 50
            + [{**_SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}] * 50,
        },
        "",
    ),
}


@pytest.mark.parametrize(("spec", "refusal"), LARGE.values(), ids=LARGE)
def test_a_large_pod_costs_dozens_of_milliseconds(spec: dict[str, Any], refusal: str) -> None:
    cache, framework = Cache(), make_framework(constraints=objects.spec)
    for number in range(TARGETS):
        add_target(cache, f"t{number}", (0, 4, ""), labels={ZONE: f"t{number}"})

    for number in range(200):
        cache.set_pod(pod(f"user-{number}", node="t0", resourceClaims=_claims(100)))

    wanted, snapshot = pod("p", **spec), cache.snapshot()
    begun = time.thread_time()
    result = framework.schedule(wanted, snapshot)
    assert time.thread_time() - begun < ALLOWED
    assert refusal in (result.statuses["t1"].message if refusal else "")


def test_others_pay_nothing_for_resources_that_no_target_has() -> None:
    cache = Cache()
    add_target(cache, "t0", (0, 4, ""))
    many = _asking(**{f"example.com/r{n}": "1" for n in range(1_000)}, cpu="1", memory="1Gi")
    cache.set_pod(pod("p", node="t0", containers=many))
    [node] = cache.snapshot().nodes
    assert len(node.requested) == resources.MOST + 1
    assert node.requested["cpu"] == 1000
    assert node.requested["memory"] == 2**30
