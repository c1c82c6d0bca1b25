"""What `vnode doctor` and `vnode connect` say of a source's own workloads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.doctor_facts import cluster
from vnode.api import keys
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.cli.doctor import neighbour_checks
from vnode.cli.doctor.findings import Level
from vnode.cli.neighbours import checks
from vnode.cli.neighbours.own_objects import OwnObjects
from vnode.nodes.coexistence import ROLE

ANY = {"operator": "Exists"}
RACK = "example.com/rack"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
OLD_TOPOLOGY = "service.kubernetes.io/topology-aware-hints"
WEBHOOK = manifests.webhook("vnode")
OLD_WEBHOOK = {"webhooks": WEBHOOK["webhooks"][:1]}


def workload(name: str, image: str = "app", args: Any = (), **spec: Any) -> Object:
    containers = [{"name": "main", "image": image, "args": list(args)}]
    template = {"spec": {"containers": containers, **spec}}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"template": template}}


def spread(key: str, **more: str) -> Object:
    constraint = {"topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}
    return workload("web", topologySpreadConstraints=[constraint])


def node(name: str, labels: dict[str, str]) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def elected(obj: Object) -> Object:
    obj["spec"]["template"]["metadata"] = {"annotations": {keys.ELECT: ""}}
    return obj


def own(**more: Any) -> OwnObjects:
    given: dict[str, Any] = {
        "machines": [node("m", {RACK: "r1"})],
        "virtual_nodes": [node("v", {RACK: "r9", ROLE: ""})],
        "webhook": WEBHOOK,
    }
    return OwnObjects(**(given | more))


def service(key: str, value: str = "Auto") -> Object:
    return {"metadata": {"name": "s", "namespace": "shop", "annotations": {key: value}}}


STRANDED = {
    "metadata": {"name": "op", "namespace": "kube-system"},
    "spec": {"nodeName": "v", "tolerations": [ANY]},
}
AUTOSCALER = workload("ca", "registry/cluster-autoscaler:v1", ["--max-nodes-total=5"])
PROPORTIONAL = workload("dns", "registry/cpa/cluster-proportional-autoscaler:1", ["--target=x"])
NO_ROLE = {"virtual_nodes": [node("v", {})]}


@pytest.mark.parametrize(
    ("there", "what", "named"),
    [
        ({"deployments": [spread(RACK)]}, "spread of own pods", "deployment/shop/web"),
        ({"stateful_sets": [spread(RACK)]}, "spread of own pods", "statefulset/shop/web"),
        ({"services": [service(TOPOLOGY_MODE)], **NO_ROLE}, "topology routing", "service/shop/s"),
        (
            {
                "services": [service(OLD_TOPOLOGY, "auto")],
                "virtual_nodes": [],
                "machines": [node("m", {ROLE: "true"})],
            },
            "topology routing",
            "service/shop/s",
        ),
        (
            {"deployments": [workload("op", tolerations=[ANY])], "webhook": OLD_WEBHOOK},
            "tolerant pods",
            "deployment/shop/op",
        ),
        (
            {
                "deployments": [workload("op", tolerations=[ANY])],
                "webhook": manifests.webhook("vnode", named=["team"]),
            },
            "tolerant pods",
            "deployment/shop/op",
        ),
        ({"stranded": [STRANDED]}, "stranded pods", "pod/kube-system/op"),
        ({"deployments": [PROPORTIONAL]}, "proportional scaling", "deployment/shop/dns"),
        ({"deployments": [AUTOSCALER]}, "cluster autoscaler", "--max-nodes-total=5"),
    ],
)
def test_what_virtual_nodes_disturb_is_a_warning_with_a_cure(
    there: Any, what: str, named: str
) -> None:
    [found] = neighbour_checks.check(cluster(own=own(**there)))
    assert (found.check, found.level) == (what, Level.WARN)
    assert named in found.text
    assert found.cure
    [line] = checks.advice(own(**there))
    assert found.text in line
    assert found.cure in line


@pytest.mark.parametrize(
    "there",
    [
        {},
        {"deployments": [spread(RACK, nodeTaintsPolicy="Honor")]},
        {"deployments": [spread("kubernetes.io/hostname")]},
        {"deployments": [elected(spread(RACK))]},
        {"deployments": [spread(RACK)], "machines": [node("m", {RACK: "r9"})]},
        {"services": [service(TOPOLOGY_MODE)]},
        {"services": [service(TOPOLOGY_MODE, "Disabled")], **NO_ROLE},
        {"services": [service("other")], **NO_ROLE},
        {"deployments": [workload("op", tolerations=[ANY])]},
        {"stranded": [{**STRANDED, "status": {"phase": "Succeeded"}}]},
        {
            "deployments": [
                workload("dns", "cluster-proportional-autoscaler", ["--nodelabels=a!=b"]),
                workload("ca", "cluster-autoscaler", ["--cloud-provider=aws"]),
            ]
        },
    ],
)
def test_what_is_prevented_is_no_warning(there: Any) -> None:
    [found] = neighbour_checks.check(cluster(own=own(**there)))
    assert (found.check, found.level) == ("own workloads", Level.OK)
    assert list(checks.advice(own(**there))) == []


def test_daemon_sets_that_get_a_pod_for_each_virtual_node_are_named() -> None:
    but = {"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [but]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    there = own(
        daemon_sets=[
            workload("proxy", tolerations=[ANY]),
            workload("picky", tolerations=[ANY], affinity=affinity),
            workload("shy"),
        ]
    )
    text = checks.tolerant_daemons(there)
    assert "daemonset/shop/proxy" in text
    assert "picky" not in text
    assert "shy" not in text
    assert list(checks.advice(there)) == [f"Note: {text}."]
    assert [f.level for f in neighbour_checks.check(cluster(own=there))] == [Level.OK, Level.OK]


def test_of_many_workloads_some_are_named() -> None:
    many = [workload(f"op-{n}", tolerations=[ANY]) for n in range(9)]
    [line] = checks.advice(own(deployments=many, webhook=None))
    assert "and 6 more" in line


def test_a_cluster_without_targets_has_no_virtual_nodes_to_check() -> None:
    assert list(neighbour_checks.check(cluster(targets=[], own=own(stranded=[STRANDED])))) == []


def test_of_what_may_not_be_read_nothing_is_said() -> None:
    assert list(checks.disturbances(OwnObjects())) == []
