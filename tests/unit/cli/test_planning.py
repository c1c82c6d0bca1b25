"""What `vnode plan` says that a policy would do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from tests.decisions import of_profiles
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.cli.plan import planning, reading, rendering
from vnode.cli.plan.free_room import ReportedTarget
from vnode.cli.plan.planning import ClusterView, PlanRequest, PolicyPlan
from vnode.nodes import capacity, virtual
from vnode.planning.cluster_decision import DecisionKind, DecisionReference

SHARES = [{"cluster": name, "weight": weight} for name, weight in (("a", 40), ("b", 40), ("c", 20))]
WEB = {"matchLabels": {"app": "web"}}
NOW = 1_700_000_000.0
GPU = "nvidia.com/gpu"


def node_of(name: str) -> str:
    return names.virtual_node("", name)


def node(name: str, namespace: str = "", cpu: str = "8") -> Object:
    made = virtual.registration(TargetKey(namespace, name))
    return made | {"status": {"allocatable": {"cpu": cpu, "pods": "100"}}}


def pod(name: str, on: str = "", app: str = "web", cpu: str = "1") -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": app, "controller": True}
    requests = {"requests": {"cpu": cpu}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": name,
            "labels": {"app": app},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": keys.PROXY_SCHEDULER,
            "containers": [{"name": "main", "resources": requests}],
            **({"nodeName": node_of(on)} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def policy(name: str = "web", **spec: Any) -> Object:
    kind = kinds.PLACEMENT_POLICIES
    metadata = {"name": name, "namespace": "team-a"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def view(*pods: Object, nodes: Objects | None = None, policies: Objects = []) -> ClusterView:  # noqa: B006
    return ClusterView(nodes or [node("a"), node("b"), node("c")], list(pods), policies)


def plan(
    obj: Object, seen: ClusterView, workload: str = "", replicas: int | None = None
) -> PolicyPlan:
    return planning.make(PlanRequest(obj, "team-a", workload, replicas), seen, NOW)


def counts(made: PolicyPlan) -> dict[str, list[tuple[str, int | None, int, int | None]]]:
    return {
        account.workload: [
            (each.cluster.removeprefix("admiralty-"), each.planned, each.running, each.difference)
            for each in account.targets
        ]
        for account in made.accounts
    }


def test_an_imaginary_workload_is_planned_from_nothing() -> None:
    made = plan(policy(targets=SHARES), view(), replicas=10)
    assert counts(made) == {
        "deployment/team-a/web": [("a", 4, 0, 4), ("b", 4, 0, 4), ("c", 2, 0, 2)]
    }


def test_a_drain_counts_until_it_ends() -> None:
    drain = [{"cluster": "a", "until": "2026-01-01T00:00:00Z"}, {"cluster": "c", "maxReplicas": 1}]
    obj = policy(targets=SHARES, drain=drain)
    assert counts(plan(obj, view(), replicas=10)) == {
        "deployment/team-a/web": [("b", 9, 0, 9), ("c", 1, 0, 1)]
    }
    request = PlanRequest(obj, "team-a", "", 10)
    later = planning.make(request, view(), NOW + 1e9)
    assert {row.cluster: row.planned for row in later.accounts[0].targets} == {
        node_of("a"): 4,
        node_of("b"): 5,
        node_of("c"): 1,
    }


def test_each_workload_is_compared_with_what_runs() -> None:
    pods = [pod(f"web-{n}", on="a") for n in range(5)] + [pod("db-0", on="a", app="db")]
    made = plan(policy(selector=WEB, targets=SHARES), view(*pods))
    assert counts(made) == {
        "statefulset/team-a/web": [("a", 2, 5, -3), ("b", 2, 0, 2), ("c", 1, 0, 1)]
    }


@pytest.mark.parametrize("workload", ["statefulset/web", "sts/web", "StatefulSet.apps/web"])
def test_one_workload_may_be_named_whatever_the_policy_selects(workload: str) -> None:
    pods = [pod("web-0", on="a"), pod("db-0", on="a", app="db")]
    made = plan(policy(targets=SHARES), view(*pods), workload)
    assert list(counts(made)) == ["statefulset/team-a/web"]
    assert made.notes == (
        "the pods of statefulset/team-a/web have no labels that the policy selects",
    )


def test_a_workload_can_be_planned_for_another_number() -> None:
    made = plan(policy(selector=WEB, targets=SHARES), view(pod("web-0", on="c")), "sts/web", 5)
    assert counts(made) == {
        "statefulset/team-a/web": [("a", 2, 0, 2), ("b", 2, 0, 2), ("c", 1, 1, 0)]
    }


def test_a_workload_without_pods_needs_a_number() -> None:
    with pytest.raises(ConfigError, match=r"deployment/team-a/x has no pods .* pass --replicas N"):
        plan(policy(), view(), "deploy/x")

    with pytest.raises(ConfigError, match="write KIND/NAME, such as deployment/web"):
        plan(policy(), view(), "web")


def test_another_policy_that_comes_first_is_named_and_an_older_version_is_not() -> None:
    others = [policy("all", selector={}, priority=1), policy(selector=WEB, priority=5)]
    made = plan(policy(selector=WEB, targets=SHARES), view(pod("web-0"), policies=others))
    assert (counts(made), made.notes) == (
        {},
        ("statefulset/team-a/web: placementpolicy/all comes first",),
    )
    invalid = policy("all", selector={}, priority=1, targets=[{}])
    unknown = policy("most", selector={}, priority=1, targets=[{"cluster": "d"}])
    seen = view(pod("web-0"), policies=[invalid, unknown])
    assert list(counts(plan(policy(selector=WEB), seen))) == ["statefulset/team-a/web"]


def test_a_cluster_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    nodes = [node("a"), node("b", "team-b"), node("c", "team-a")]
    wanted = policy(targets=[{"cluster": "b"}])
    with pytest.raises(ConfigError, match=r"placementpolicy/web: .* ClusterTarget b: .*are: a, c,"):
        plan(wanted, view(nodes=nodes), replicas=1)


def test_without_weights_shares_are_by_what_is_free_and_a_note_says_so() -> None:
    nodes = [node("a", cpu="30"), node("b", cpu="10")]
    waiting = [pod(f"web-{n}") for n in range(4)]
    made = plan(policy(selector=WEB), view(*waiting, nodes=nodes))
    assert counts(made) == {"statefulset/team-a/web": [("a", 3, 0, 3), ("b", 1, 0, 1)]}
    assert "the policy has no weights" in made.notes[0]
    others = [pod(f"db-{n}", on="a", app="db") for n in range(20)]
    made = plan(policy(selector=WEB), view(*waiting, *others, nodes=nodes))
    assert counts(made) == {"statefulset/team-a/web": [("a", 2, 0, 2), ("b", 2, 0, 2)]}


def told(*free: int) -> ReportedTarget:
    """Return what a target with nodes of so many free GPUs says."""
    found = []
    for place, gpus in enumerate(free):
        offered = {"cpu": "64", "pods": "110", GPU: str(gpus)}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"conditions": ready, "capacity": offered, "allocatable": offered}
        labels = {"nvidia.com/gpu.product": "A100"}
        found.append({"metadata": {"name": f"n{place}", "labels": labels}, "status": status})

    return ReportedTarget(capacity.summary(map(capacity.trim_node, found), capacity.Usage()))


def test_without_weights_what_is_free_on_one_node_counts() -> None:
    """Eight nodes with a GPU each have no room for a pod of two, one with two has."""
    waiting = [pod(f"web-{n}") for n in range(4)]
    for each in waiting:
        each["spec"]["containers"][0]["resources"] = {"requests": {GPU: "2"}}

    of_nodes = {node_of("a"): told(*[1] * 8), node_of("b"): told(2), node_of("c"): told(6)}
    made = plan(policy(selector=WEB), replace(view(*waiting), told=of_nodes))
    assert counts(made) == {"statefulset/team-a/web": [("b", 1, 0, 1), ("c", 3, 0, 3)]}


def test_people_read_a_table_and_programs_an_object() -> None:
    targets = [{"cluster": "a", "weight": 1, "maxReplicas": 2}]
    made = plan(policy(selector=WEB, targets=targets), view(*[pod(f"web-{n}") for n in range(3)]))
    shown = rendering.as_text(made, {node_of("a"): "a"}).splitlines()
    assert shown == [
        "statefulset/team-a/web: 3 replicas, Spread",
        "TARGET   PLANNED   RUNNING   WAITING   DIFFERENCE",
        "a        2         0         0         +2",
        "1 replicas have no place: raise maxReplicas, or add clusters",
    ]
    found = rendering.as_object(made, {node_of("a"): "a"})
    [workload] = found["workloads"]
    assert (found["kind"], found["mode"], workload["unplaced"]) == ("PlacementPlan", "Spread", 1)
    assert workload["targets"] == [
        {
            "cluster": node_of("a"),
            "target": "a",
            "planned": 2,
            "running": 0,
            "waiting": 0,
            "placeholders": 0,
            "difference": 2,
        }
    ]


def test_modes_without_a_plan_say_so() -> None:
    made = plan(policy(mode="Any", selector=WEB), view(pod("web-0", on="a")))
    assert "there is no plan in mode Any" in rendering.as_text(made, {})
    made = plan(policy(mode="Single"), view(), replicas=3)
    assert "all go where the first pod goes" in rendering.as_text(made, {})
    assert "for no pod that there is" in rendering.as_text(plan(policy(), view()), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Deployment", "has no policy: write apiVersion vnode.dev/v1alpha1 and kind Placem"),
        ("[]", "has no policy"),
        ("a: b: c", "is no policy: it is not YAML"),
        (json.dumps(policy() | {"metadata": {}}), "metadata.name is missing"),
        (json.dumps(policy() | {"mode": "Fill"}), 'unknown field "mode"; the policy is below'),
    ],
)
def test_a_file_that_is_no_policy_says_why(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        reading.read_policy(str(file), "team-a")


def test_a_policy_without_a_namespace_is_for_that_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    obj = policy()
    del obj["metadata"]["namespace"]
    file.write_text(json.dumps(obj))
    assert objects.namespace(reading.read_policy(str(file), "team-b")) == "team-b"
    file.write_text(json.dumps(obj | {"kind": "ClusterPlacementPolicy"}))
    assert objects.namespace(reading.read_policy(str(file), "team-b")) == ""
    with pytest.raises(ConfigError, match="cannot read"):
        reading.read_policy(str(tmp_path / "absent"), "team-b")


@pytest.mark.looptime
async def test_the_cluster_is_read_without_what_is_no_proxy_pod(clock: Clock) -> None:
    server = APIServer("c1", clock)
    server.add(kinds.NODES, node("a"))
    server.add(kinds.NODES, {"metadata": {"name": "real"}})
    server.add(kinds.PODS, pod("web-0", on="a"))
    server.add(kinds.PODS, {"metadata": {"name": "other", "namespace": "team-a"}, "spec": {}})
    server.add(kinds.PODS, {"metadata": {"name": "web-0", "namespace": "team-b"}, "spec": {}})
    server.add(kinds.PLACEMENT_POLICIES, policy())
    server.fail(Denied(403, "Forbidden", ""), verb="list", kind=kinds.CLUSTER_PLACEMENT_POLICIES)
    seen = await reading.read_cluster(server.client(), "team-a")
    assert [objects.name(found) for found in (*seen.nodes, *seen.pods, *seen.policies)] == [
        node_of("a"),
        "web-0",
        "web",
    ]


@pytest.mark.looptime
async def test_targets_are_asked_and_those_that_cannot_be_are_named(clock: Clock) -> None:
    server = APIServer("c1", clock)
    for name, spec in (("a", {"self": True}), ("b", {"kubeconfigSecret": {"name": "b"}})):
        server.add(kinds.TARGETS, {"metadata": {"name": name, "namespace": "team-a"}, "spec": spec})

    said = told(4).summary or {}
    beats = {keys.HEARTBEAT: objects.timestamp(clock.now())}
    said["metadata"]["annotations"] |= beats
    server.add(kinds.CLUSTER_SUMMARIES, said)
    seen = await reading.ask_targets(server.client(), "team-a", view(), clock.now())
    here, there = (seen.told[names.virtual_node("team-a", name)] for name in "ab")
    assert here.summary is not None
    assert (there.summary, len(seen.unasked)) == (None, 1)
    assert seen.unasked[0].startswith(
        "team-a/b counts as its virtual node says: there is no Secret"
    )
    later = clock.now() + timedelta(hours=1)
    seen = await reading.ask_targets(server.client(), "team-a", view(), later)
    assert seen.told[names.virtual_node("team-a", "a")].summary is None


def test_a_plan_is_for_the_clusters_decided_and_tells_what_is_wrong_with_the_decision() -> None:
    named = {"kind": "PlacementDecision", "apiGroup": "multicluster.x-k8s.io", "name": "gpu"}
    nodes = [node(name) for name in "abc"]
    for each in nodes[:2]:
        name = objects.name(each)
        each["metadata"]["annotations"] = {keys.CLUSTER_PROFILE: f"fleet/{name}"}

    profiles = [f"fleet/{node_of(name)}" for name in "bx"]
    decided = of_profiles("gpu", *profiles, namespace="team-a")
    seen = replace(view(nodes=nodes), decisions=[decided])
    following = policy(clusters={"decisionRef": named})
    made = plan(following, seen, replicas=3)
    assert [each.cluster for each in made.accounts[0].targets if each.planned] == [node_of("b")]
    assert made.notes[0] == (
        "placementdecision/team-a/gpu selects clusters without a virtual node: "
        "fleet/admiralty-x; create a Target or ClusterTarget for each"
    )
    made = plan(following, view(nodes=nodes), replicas=3)
    assert made.accounts[0].targets == ()
    assert "there is no PlacementDecision" in made.notes[0]


async def test_decisions_are_read_where_the_policy_names_them(clock: Clock) -> None:
    server = APIServer("c1", clock)
    server.add(kinds.PLACEMENT_DECISIONS, of_profiles("gpu", "a", namespace="team-a"))
    server.add(kinds.PLACEMENT_DECISIONS, of_profiles("gpu", "b", namespace="other"))
    named = DecisionReference(DecisionKind.PLACEMENT_DECISION, "team-a", "gpu")
    seen = await reading.read_cluster(server.client(), "team-a", named)
    assert [objects.namespace(each) for each in seen.decisions] == ["team-a"]
    named = DecisionReference(DecisionKind.PLACEMENT, "team-a", "gpu")
    server.fail(NotFound(404, "NotFound", ""), verb="list", kind=kinds.OCM_PLACEMENT_DECISIONS)
    assert not (await reading.read_cluster(server.client(), "team-a", named)).decisions
    assert not (await reading.read_cluster(server.client(), "team-a")).decisions
