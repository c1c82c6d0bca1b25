from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.api import keys
from vnode.api.class_names import ClassNames
from vnode.nodes import member_taints
from vnode.scheduling import registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import Profile
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry
from vnode.scheduling.result import CycleResult
from vnode.scheduling.snapshot import VirtualNode
from vnode.scheduling.status import Code

TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}


@pytest.fixture
def framework() -> Framework:
    return make_framework()


def run(framework: Framework, candidate: dict[str, Any], *nodes: VirtualNode) -> CycleResult:
    cache = Cache()
    for node in nodes:
        cache.update_node(node)

    return framework.schedule(candidate, cache.snapshot())


def why(framework: Framework, candidate: dict[str, Any], node: VirtualNode) -> str:
    """Return `Plugin: reason` of the rejection, "" if the node passed."""
    rejection = run(framework, candidate, node).statuses.get(node.name)
    return f"{rejection.plugin}: {rejection.message}" if rejection else ""


def test_a_target_takes_pods_of_its_own_namespace_only(framework: Framework) -> None:
    node = virtual_node("a", target_namespace="team")
    assert why(framework, pod("p", namespace="team"), node) == ""
    assert why(framework, pod("p"), node) == 'TargetNamespace: takes only pods of namespace "team"'
    assert why(framework, pod("p"), virtual_node("a")) == ""


CLASSES = ClassNames(frozenset({"gvisor"}), frozenset({"high"}))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"runtimeClassName": "gvisor", "priorityClassName": "high"}, ""),
        ({"runtimeClassName": "kata"}, 'RuntimeClass "kata" not found: create it in the target'),
        ({"priorityClassName": "low"}, 'PriorityClass "low" not found: create it in the target'),
        ({"priorityClassName": "system-node-critical"}, ""),
        ({"priorityClassName": "", "priority": 5}, ""),
        ({}, ""),
    ],
)
def test_a_target_must_have_the_classes_that_a_pod_names(
    framework: Framework, spec: dict[str, Any], reason: str
) -> None:
    verdict = why(framework, pod("p", **spec), virtual_node("a", classes=CLASSES))
    assert verdict == (f"TargetClasses: {reason}" if reason else "")


def test_a_target_that_does_not_say_which_classes_it_has_is_asked(framework: Framework) -> None:
    wanted = pod("p", runtimeClassName="kata", priorityClassName="low")
    assert why(framework, wanted, virtual_node("a")) == ""
    nothing = ClassNames(frozenset(), frozenset())
    assert why(framework, wanted, virtual_node("a", classes=nothing)) != ""


def test_an_unhealthy_target_says_what_ails_it(framework: Framework) -> None:
    node = virtual_node("a", healthy=False, unhealthy_reason="unreachable for 3m")
    assert why(framework, pod("p"), node) == "TargetHealth: unreachable for 3m"


def test_a_cordoned_node_takes_only_pods_that_tolerate_it(framework: Framework) -> None:
    node = virtual_node("a", cordoned=True)
    assert (
        why(framework, pod("p"), node)
        == "NodeUnschedulable: the virtual node was unschedulable (cordoned)"
    )
    assert why(framework, pod("p", tolerations=[{"operator": "Exists"}]), node) == ""


def test_an_untolerated_taint_is_named(framework: Framework) -> None:
    node = virtual_node("a", taints=[TAINT])
    assert why(framework, pod("p"), node) == "TaintToleration: had untolerated taint {k: v}"
    assert why(framework, pod("p", tolerations=[{"key": "k", "value": "v"}]), node) == ""


def test_a_taint_of_a_managed_cluster_takes_new_pods_only_with_a_toleration(
    framework: Framework,
) -> None:
    tainted = {"spec": {"taints": [{"key": "full", "value": "yes", "effect": "NoSelect"}]}}
    node = virtual_node("a", taints=member_taints.of_cluster(tainted))
    assert why(framework, pod("p"), node) == "TaintToleration: had untolerated taint {full: yes}"
    assert why(framework, pod("p", tolerations=[{"key": "full", "operator": "Exists"}]), node) == ""


def test_node_selector_and_required_affinity_must_both_match(framework: Framework) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    wanted = pod("p", nodeSelector={"zone": "x"}, affinity=affinity)
    assert why(framework, wanted, virtual_node("a", labels={"zone": "x", "gpu": "1"})) == ""
    for labels in ({"zone": "x"}, {"gpu": "1"}, {"zone": "y", "gpu": "1"}):
        assert why(framework, wanted, virtual_node("a", labels=labels)).startswith("NodeAffinity")


def test_an_unreadable_affinity_is_a_reason_and_not_a_crash(framework: Framework) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert 'operator "Is" is not one of' in why(
        framework, pod("p", affinity=affinity), virtual_node("a")
    )


def free(cpu: int, largest: int | None = None, **extra: int) -> Cache:
    cache = Cache()
    cache.update_node(virtual_node("a", allocatable={"cpu": 10_000, "pods": 10}))
    single = {"cpu": cpu if largest is None else largest, "pods": 10, **extra}
    cache.update_free("a", {"cpu": cpu, "pods": 10, **extra}, single)
    return cache


@pytest.mark.parametrize(
    ("cache", "reason"),
    [
        (free(2000), ""),
        (free(1999), "Insufficient cpu"),
        (free(5000, largest=1999), "Insufficient cpu on any one node"),
        (free(5000, pods=0), "Too many pods"),
    ],
)
def test_a_pod_must_fit_into_the_whole_and_into_some_node(
    framework: Framework, cache: Cache, reason: str
) -> None:
    result = framework.schedule(pod("p", cpu="2"), cache.snapshot())
    assert (result.statuses["a"].message if result.statuses else "") == reason


def test_a_target_that_does_not_say_what_is_free_has_what_our_pods_leave(
    framework: Framework,
) -> None:
    cache = Cache()
    cache.update_node(virtual_node("a", allocatable={"cpu": 3000}))
    cache.set_pod(pod("other", cpu="2", node="a"))
    snapshot = cache.snapshot()
    assert framework.schedule(pod("p", cpu="1"), snapshot).feasible
    assert framework.schedule(pod("p", cpu="1001m"), snapshot).statuses["a"].reasons == (
        "Insufficient cpu",
    )


def test_a_target_that_nobody_knows_anything_about_may_be_tried(framework: Framework) -> None:
    assert why(framework, pod("p", cpu="1000"), virtual_node("a")) == ""


def test_an_empty_target_is_probed_so_that_it_can_scale_from_zero(framework: Framework) -> None:
    nodes = [virtual_node(name, allocatable={}) for name in "abc"]
    cordoned = virtual_node("d", allocatable={}, cordoned=True)
    result = run(framework, pod("p", cpu="1"), *nodes, cordoned)
    assert result.status.code is Code.UNSCHEDULABLE
    assert len(result.nominated) == 1
    assert set(result.nominated) < {"a", "b", "c"}
    assert run(framework, pod("p", cpu="1"), *nodes, cordoned).nominated == result.nominated
    chosen = {run(framework, pod(f"p{n}", cpu="1"), *nodes).nominated for n in range(50)}
    assert len(chosen) == 3


def test_nothing_is_probed_that_more_room_would_not_help(framework: Framework) -> None:
    assert run(framework, pod("p", cpu="1"), virtual_node("a", healthy=False)).nominated == ()


def test_a_gated_pod_is_not_ready() -> None:
    known = Registry(defaults.PLUGINS)
    framework = registry.build(
        Profile(),
        known,
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, clock=ManualClock()),
    )
    gated = framework.pre_enqueue(pod("p", schedulingGates=[{"name": "kueue"}]))
    assert gated.message == "waiting for scheduling gates: kueue"
    assert framework.pre_enqueue(pod("p")).is_success


def delegate(**annotations: str) -> dict[str, Any]:
    found = pod("p")
    owner = {"kind": "PodChaperon", "uid": "c", "controller": True}
    found["metadata"] |= {"annotations": annotations, "ownerReferences": [owner]}
    return found


@pytest.mark.parametrize(
    ("uid", "expected"),
    [
        ("three", ""),
        ("one", "Chain: the pod came through that cluster"),
        ("two", "Chain: the pod came through that cluster"),
        (None, "Chain: its cluster is not known yet"),
        ("", "Chain: its cluster is unknown: check that the vnode agent runs there"),
    ],
)
def test_a_delegate_is_not_sent_to_a_cluster_that_it_came_through(
    framework: Framework, uid: str | None, expected: str
) -> None:
    sent = delegate(**{keys.PATH: "one,two", keys.PARENT_CLUSTER_UID: "two"})
    node = virtual_node("a", cluster_uid=uid)
    assert why(framework, sent, node) == expected
    assert why(framework, pod("p"), node) == ""


def test_a_delegate_whose_way_cannot_be_read_goes_nowhere(framework: Framework) -> None:
    reason = why(framework, delegate(**{keys.PATH: "," * 99}), virtual_node("a", cluster_uid="x"))
    assert reason == f"Chain: annotation {keys.PATH} is not one that an agent wrote"
