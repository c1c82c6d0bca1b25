"""What people see of placement policies: which one a pod has, and what came of it."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.explained_pods import NODE, NOW, facts, proxy, target
from vnode.api import keys
from vnode.api.objects import Object
from vnode.cli.explain import rendering
from vnode.insight import policies, story

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u", "controller": True}
WORKLOAD = "job/default/web"


def policy(name: str = "web", namespace: str = "default", **fields: Any) -> Object:
    """Return a policy for pods with the label `app: web`, in force."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "fine"}
    status = {"conditions": [{**condition, **fields.pop("condition", {})}]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, **fields.pop("spec", {})}
    return {"metadata": metadata, "spec": spec, "status": {**status, **fields}}


def pod(**more: Any) -> Object:
    metadata = {"labels": {"app": "web"}, "ownerReferences": [OWNER], **more.pop("metadata", {})}
    return proxy(metadata=metadata, **more)


def counted(*targets: Object, **more: Any) -> Object:
    return {"workloads": [{"workload": WORKLOAD, "replicas": 3, "targets": list(targets), **more}]}


def test_a_pod_that_no_policy_is_for_has_no_plan() -> None:
    assert policies.of_pod([], pod()) is None
    assert policies.of_pod([policy()], proxy()) is None
    built = story.build(facts(proxy(), target(), policies=[policy()]))
    assert "Placement" not in [chapter.title for chapter in built.chapters]


def test_the_plan_is_that_of_the_policy_that_counts() -> None:
    berlin = {"cluster": "berlin", "planned": 2, "running": 1, "waiting": 1}
    closed = "2026-01-01T00:10:00Z"
    paris = {"cluster": "paris", "running": 1, "noMovesUntil": closed}
    ours = policy(**counted(berlin, paris, unplaced=1))
    plan = policies.of_pod([policy("everyones", ""), ours], pod())
    assert plan is not None
    assert plan.policy is not None
    assert plan.counts is not None
    assert plan.policy.name == "placementpolicy/web"
    assert policies.summary(plan.counts) == (
        "berlin 2 planned, 1 running, 1 waiting; "
        f"paris 1 running, no pod is moved there until {closed}; "
        "1 unplaced, which the maximums leave over"
    )


def test_a_policy_that_is_not_in_force_is_told_with_its_cure() -> None:
    refused = policy(
        condition={"status": "False", "reason": "UnknownCluster", "message": "create Target moon"}
    )
    plan = policies.of_pod([refused, policy("everyones", "")], pod())
    assert plan is not None
    assert plan.policy is not None
    assert plan.policy.name == "clusterplacementpolicy/everyones"
    built = story.build(facts(pod(), target(), policies=[refused]))
    text = rendering.as_text(built, NOW, 200)
    assert "placementpolicy/web is not in force: UnknownCluster: create Target moon" in text
    assert "so the pod is placed as without a policy" in text


def test_a_refused_policy_that_would_not_count_anyway_is_not_told() -> None:
    late = policy("x", "", condition={"status": "False"})
    plan = policies.of_pod([policy(), late], pod())
    assert plan is not None
    assert not plan.refused


def test_a_policy_that_cannot_be_read_is_shown_with_what_is_wrong() -> None:
    bad = policy(spec={"mode": "Wild"})
    bad["status"] = {}
    shown = policies.shown(bad)
    assert (shown.is_accepted, shown.mode) == (False, "Wild")
    assert "mode" in shown.message
    assert policies.of_pod([bad], pod()) is None


def test_a_status_of_any_shape_is_survived() -> None:
    shown = policies.shown(policy(workloads=["x", {"targets": [1, {"planned": "2"}]}], replicas=""))
    assert shown.replicas == 0
    assert shown.workloads[0].clusters == (policies.ShownCluster("", 0, 0, 0),)


def test_the_reason_of_the_place_is_told_with_the_decision() -> None:
    why = "overflowed from berlin after 2m (placementpolicy/web)"
    bound = pod(node=NODE, phase="Running", metadata={"annotations": {keys.PLACED: why}})
    built = story.build(facts(bound, target(), policies=[policy(**counted())]))
    decision = next(chapter for chapter in built.chapters if chapter.title == "Decision")
    assert [line.text for line in decision.lines][1:] == [why]
    assert f"{WORKLOAD} has 3 replicas" in rendering.as_text(built, NOW, 200)


def test_a_decision_that_cannot_be_used_is_told() -> None:
    undecided = {"type": "Decided", "status": "False", "message": "placement/x selects no clusters"}
    of_web = policy(**counted())
    of_web["status"]["conditions"].append(undecided)
    assert policies.message(of_web) == undecided["message"]
    built = story.build(facts(pod(), target(), policies=[of_web]))
    assert undecided["message"] in rendering.as_text(built, NOW, 200)
    undecided["status"] = "True"
    assert policies.undecided(of_web) == ""
