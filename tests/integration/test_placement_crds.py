"""What a real API server accepts as a placement policy, and what it refuses with the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.fleets import SOURCE
from tests.integration.custom_objects import create
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.placement.policies import decoding
from vnode.placement.status import accounts
from vnode.placement.status.counting import WorkloadTally
from vnode.planning.policy_node import PlannedNode

BOTH = [kinds.PLACEMENT_POLICIES, kinds.CLUSTER_PLACEMENT_POLICIES]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "placement.md"
A = {"cluster": "a"}


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
async def test_every_field_is_kept_and_means_what_the_agent_reads(
    client: Client, namespace: str, kind: Kind
) -> None:
    expression = {"key": "tier", "operator": "NotIn", "values": ["test"]}
    spec: Object = {
        "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [expression]},
        "priority": 3,
        "groupBy": "jobset.sigs.k8s.io/jobset-name",
        "clusters": {
            "selector": {"matchLabels": {"cloud": "x"}},
            "names": ["a", "b"],
            "exclude": ["c"],
            "properties": [
                {"name": "example.com/memory", "operator": "Gt", "values": ["400Gi"]},
                {"name": "example.com/gpus", "operator": "In", "values": [4, 8]},
                {"name": "example.com/price", "operator": "Exists"},
            ],
        },
        "mode": "Fill",
        "targets": [
            {**A, "weight": 40, "priority": 1, "minReplicas": 2, "maxReplicas": 2},
            {"selector": {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["3"]}]}},
        ],
        "overflow": {"afterUnschedulableFor": "1h2m3s", "maxCandidates": 2},
        "failback": {"mode": "Probe", "stabilization": "90s", "maxConcurrent": "25%"},
        "drain": [{"cluster": "b", "maxReplicas": 1, "until": "2126-01-31T06:00:00Z"}],
        "reschedule": {"when": ["PolicyChanged", "ClusterJoined", "LabelsChanged"]},
        "failover": {
            "tolerationSeconds": 60,
            "purge": "Graceful",
            "gracePeriodSeconds": 90,
            "maxEvictionsPerMinute": 5,
            "preserve": [
                {"annotation": "example.com/at", "fromAnnotation": "example.com/at"},
                {"annotation": "ip", "fromStatus": "podIPs[0].ip"},
            ],
        },
    }
    created = await create(client, kind, namespace, spec=spec)
    assert created["spec"] == spec
    policy = decoding.decode(created)
    assert (policy.priority, policy.overflow.after) == (3, 3723.0)
    assert policy.name == f"{kind.kind.lower()}/{namespace}"


async def test_the_mode_is_spread_by_default(client: Client, namespace: str) -> None:
    created = await create(client, kinds.PLACEMENT_POLICIES, namespace, spec={})
    assert created["spec"] == {"mode": "Spread"}


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        ({"targets": [{"weight": 1}]}, "give exactly one of cluster and selector"),
        ({"targets": [{**A, "selector": {}}]}, "give exactly one of cluster and selector"),
        ({"targets": [{**A, "minReplicas": 3, "maxReplicas": 2}]}, "minReplicas is above max"),
        ({"mode": "Any", "targets": [{**A, "weight": 1}]}, "in the modes Spread and Fill only"),
        ({"mode": "Single", "targets": [{**A, "minReplicas": 1}]}, "modes Spread and Fill only"),
        ({"mode": "Single", "overflow": {}}, "overflow means something in the modes Spread"),
        ({"mode": "Any", "drain": [A]}, "failback, drain and reschedule mean nothing in the mode"),
        ({"mode": "Single", "failback": {"mode": "Never"}}, "in the mode Single no pod overflows"),
        ({"mode": "Single", "failback": {"stabilization": "1m"}}, "no pod overflows: leave out"),
        ({"failback": {"maxConcurrent": 0}}, "greater than or equal to 1"),
        ({"failback": {"maxConcurrent": "0%"}}, "should match"),
        ({"drain": [A, A]}, "Duplicate value"),
        (
            {"failover": {"purge": "Immediate", "gracePeriodSeconds": 1}},
            "gracePeriodSeconds means nothing with purge Immediate",
        ),
        ({"failover": {"purge": "Never", "tolerationSeconds": 1}}, "mean nothing with purge Never"),
        (
            {"failover": {"preserve": [{"annotation": "a"}]}},
            "give exactly one of fromAnnotation and fromStatus",
        ),
        (
            {"failover": {"preserve": [{"annotation": "vnode.dev/a", "fromStatus": "podIP"}]}},
            "targets get no annotation of vnode or Admiralty",
        ),
        (
            {"failover": {"preserve": [{"annotation": "a", "fromStatus": "podIPs["}]}},
            "should match",
        ),
        ({"failover": {"maxEvictionsPerMinute": 0}}, "greater than or equal to 1"),
        ({"drain": [{**A, "until": "soon"}]}, "must be of type date-time"),
        ({"mode": "Pack"}, 'supported values: "Spread", "Fill", "Single", "Any"'),
        ({"targets": [{**A, "weight": -1}]}, "greater than or equal to 0"),
        ({"overflow": {"afterUnschedulableFor": "soon"}}, "should match"),
        ({"overflow": {"maxCandidates": 0}}, "greater than or equal to 1"),
        (
            {"clusters": {"properties": [{"name": "m", "operator": "Gt", "values": [1, 2]}]}},
            "Gt, Ge, Lt and Le take one value",
        ),
        ({"clusters": {"properties": [{"name": "m", "operator": "In"}]}}, "one or more"),
    ],
)
async def test_what_cannot_work_is_refused_with_the_cure(
    client: Client, namespace: str, kind: Kind, spec: Object, cure: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await create(client, kind, namespace, spec=spec)

    assert cure in refusal.value.message


async def test_what_the_agent_writes_is_kept_and_shown(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    created = await create(
        client, kinds.PLACEMENT_POLICIES, namespace, spec={"targets": [A, {**A}]}
    )
    tally = WorkloadTally(namespace, replicas=3)
    tally.running["a"] = 1
    policy = decoding.decode({**created, "spec": {"targets": [{**A, "weight": 1}]}})
    found = accounts.account(policy, "deployment/x/web", tally, [PlannedNode("a", {})])
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "the policy is in force",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    status = accounts.status({"deployment/x/web": tally}, [found]) | {"conditions": [condition]}
    patched = await client.patch(
        kinds.PLACEMENT_POLICIES, namespace, {"status": status}, namespace, subresource="status"
    )
    assert objects.status(patched) == status
    header, row = fleet.kubectl(SOURCE, "get", "plpol", "-n", namespace).strip().split("\n")
    assert header.split() == ["NAME", "MODE", "READY", "ACCEPTED", "WORKLOADS", "REPLICAS", "AGE"]
    assert row.split()[:5] == [namespace, "Spread", "True", "1", "3"]


async def test_the_policies_of_the_page_are_accepted(client: Client, namespace: str) -> None:
    found = 0
    for block in PAGE.read_text().split("```yaml\n")[1:]:
        for obj in yaml.safe_load_all(block.partition("```")[0]):
            kind = next((kind for kind in BOTH if kind.kind == obj["kind"]), None)
            if kind is not None:
                found += 1
                obj["metadata"] = {"name": f"{namespace}-{found}"}
                if kind.namespaced:
                    obj["metadata"]["namespace"] = namespace

                decoding.decode(await client.create(kind, obj))

    assert found > 2
