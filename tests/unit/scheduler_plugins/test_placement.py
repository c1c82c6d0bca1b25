"""What the plugin makes of a policy in one cycle; tests/unit/pods/source has whole fleets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.pods.policies import Fixed, entry, spread
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.planning import choosing
from vnode.planning.cluster_decision import (
    ClusterDecision,
    DecidedCluster,
    DecisionKind,
    DecisionReference,
)
from vnode.planning.policy import Mode, Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload
from vnode.scheduling import registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import Profile
from vnode.scheduling.cycle import UNPLANNED
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry
from vnode.scheduling.result import CycleResult
from vnode.scheduling.status import Code

FULL = {"cpu": 0, "pods": 100}
AMPLE = {"cpu": 10_000, "pods": 100}


class PluginEnvironment:
    """Nodes with so much free, and the real default profile with one policy."""

    def __init__(self, policy: Policy | None, **free: dict[str, int]) -> None:
        self.clock = ManualClock()
        self.cache = Cache()
        self.policy = Fixed(policy)
        self.framework: Framework = registry.build(
            Profile(),
            Registry(defaults.PLUGINS),
            defaults.WEIGHTS,
            Handle(namespace_refusal=any_namespace, policies=self.policy, clock=self.clock),
        )
        for name, amounts in free.items():
            self.cache.update_node(virtual_node(name))
            self.cache.update_free(name, amounts, amounts)

    def cycle(self, one: dict[str, Any], **asked: float) -> CycleResult:
        result = self.framework.schedule(one, self.cache.snapshot(), asked)
        result.state.outcome.record()
        return result


def of_web(uid: str, node: str = "", since: str = "") -> dict[str, Any]:
    made = pod(uid, owner="web", cpu="1", node=node)
    made["metadata"]["ownerReferences"][0] |= {"kind": "Job", "name": "web"}
    if since:
        condition = {"status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
        made["status"]["conditions"] = [{"type": "PodScheduled", **condition}]

    return made


def test_without_policies_nothing_is_counted_and_nobody_is_rejected() -> None:
    env = PluginEnvironment(None, a=AMPLE, b=AMPLE)
    result = env.cycle(of_web("p"))
    assert {node.name for node in result.feasible} == {"a", "b"}
    assert all("PlacementPolicy" not in node.scores for node in result.feasible)
    assert not env.cache.workloads._groups


def test_nodes_that_are_not_the_policys_are_out_for_good() -> None:
    env = PluginEnvironment(spread(entry("a")), a=AMPLE, b=AMPLE)
    result = env.cycle(of_web("p"))
    assert [node.name for node in result.feasible] == ["a"]
    rejection = result.statuses["b"]
    assert rejection.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert rejection.message == "didn't match placementpolicy/web"
    assert result.excluded == {"b"}


def test_a_full_planned_cluster_is_probed_and_no_other() -> None:
    env = PluginEnvironment(
        spread(entry("a", weight=9), entry("b", weight=1)), a=FULL, b=FULL, c=FULL
    )
    env.cache.set_pod(of_web("p"))
    result = env.cycle(of_web("p"))
    assert result.nominated == ("a",)
    assert result.excluded == {"b", "c"}
    assert env.cycle(of_web("p"), a=1.0).nominated == ("a",)


def test_once_a_cluster_is_opened_it_is_probed_too() -> None:
    env = PluginEnvironment(
        spread(entry("a", weight=9), entry("b", weight=1), after=60), a=FULL, b=FULL
    )
    waiting = of_web("p", since="2026-01-01T00:00:00Z")
    env.cache.set_pod(waiting)
    assert env.cycle(waiting).state.retry_at == 60
    env.clock.seconds = 60
    result = env.cycle(waiting, a=1.0)
    assert result.nominated == ("b",)
    assert not result.excluded
    assert result.state.outcome.kept == {"a", "b"}
    assert result.state.retry_at == math.inf


def test_two_cycles_on_unchanged_input_give_the_same_choice() -> None:
    entries = (entry(name, weight=3) for name in "abcde")
    env = PluginEnvironment(spread(*entries), **dict.fromkeys("abcde", AMPLE))
    pods = [of_web(f"p{number}") for number in range(12)]
    for each in pods:
        env.cache.set_pod(each)

    first = [[node.name for node in env.cycle(each).feasible] for each in pods]
    assert all(len(nodes) == 1 for nodes in first)
    again = [[node.name for node in env.cycle(each).feasible] for each in reversed(pods)]
    assert again[::-1] == first


def test_scores_do_not_put_another_cluster_before_the_planned_one() -> None:
    policy = spread(entry("a", weight=99), entry("b", weight=1), after=60)
    env = PluginEnvironment(policy, a=AMPLE, b=AMPLE)
    for number in range(5):
        env.cache.set_pod(of_web(f"q{number}", node="a"))

    waiting = of_web("p", since="2026-01-01T00:00:00Z")
    env.cache.set_pod(waiting)
    env.clock.seconds = 70
    assert [node.name for node in env.cycle(waiting).feasible] == ["a", "b"]


def test_a_maximum_that_was_lowered_keeps_a_reserved_pod_out() -> None:
    env = PluginEnvironment(spread(entry("a")), a=AMPLE)
    for uid in ("p", "q"):
        env.cache.set_pod(of_web(uid))
        assert env.cycle(of_web(uid)).feasible
        env.cache.assume(of_web(uid), "a", 0.0)

    env.policy.policy = spread(entry("a", maximum=1))
    env.cache.set_pod(of_web("q", node="a"))
    refusal = env.framework.check(of_web("p"), env.cache.snapshot(), "a")
    assert refusal.message == "at its maximum of 1 by placementpolicy/web"


def test_a_cordoned_cluster_has_no_share_and_its_pods_are_not_planned() -> None:
    entries = (entry(name, weight=1) for name in "ab")
    env = PluginEnvironment(spread(*entries), a=AMPLE, b=AMPLE, c=AMPLE)
    env.cache.set_pod(of_web("q", node="a"))
    env.cache.update_node(virtual_node("a", cordoned=True))
    env.cache.set_pod(of_web("p"))
    result = env.cycle(of_web("p"))
    assert [node.name for node in result.feasible] == ["b"]
    assert result.statuses["a"].plugin == "NodeUnschedulable"


def any_of(*nodes: str) -> dict[str, Share]:
    return {node: Share(node) for node in nodes}


def test_pods_that_are_to_stay_together_agree_on_one_cluster() -> None:
    env = PluginEnvironment(spread(mode=Mode.SINGLE), a=AMPLE, b=AMPLE, c=AMPLE)
    for uid in ("p", "q"):
        env.cache.set_pod(of_web(uid))
        env.cycle(of_web(uid))

    workload: Workload = env.cache.workloads.of(of_web("p"), "")
    p, q = workload.members["p"], workload.members["q"]
    assert choosing.home(workload, p, any_of("a", "b")) == ""
    env.cache.assume(of_web("p"), "b", 0.0)
    assert choosing.home(workload, p, any_of("a", "b")) == "", "it may still go elsewhere"
    assert choosing.home(workload, q, any_of("a", "b")) is None, "until that one has a place"
    env.cache.assume(of_web("q"), "a", 0.0)
    assert choosing.home(workload, p, any_of("a", "b")) == "", "of two that look one goes on"
    assert choosing.home(workload, q, any_of("a", "b")) is None
    drained = any_of("b") | {"a": Share("a", maximum=0)}
    assert choosing.home(workload, q, drained) is None, "p has a candidate in b, and q in none"
    assert choosing.home(workload, p, drained) == "", "a can take none of them"
    env.cache.set_pod(of_web("r", node="c"))
    assert choosing.home(workload, p, any_of("a", "b", "c")) == "c"
    assert choosing.home(workload, p, any_of("a", "b")) == "", "c is not the policy's any more"


def test_each_mode_says_why_a_pod_has_its_place() -> None:
    env = PluginEnvironment(
        spread(entry("a", weight=9), entry("b", weight=1), after=60), a=AMPLE, b=AMPLE
    )
    waiting = of_web("p", since="2026-01-01T00:00:00Z")
    env.cache.set_pod(waiting)
    env.clock.seconds = 60
    explain = env.cycle(waiting).state.outcome.explain
    assert explain is not None
    assert explain("a") == "planned here: 1 of 1 by weight 9 (placementpolicy/web)"
    assert explain("b") == "overflowed from a after 1m (placementpolicy/web)"
    assert explain("elsewhere") == ""
    workload = "job/default/web"
    for mode, expected in (
        (Mode.ANY, "best score of the clusters that the policy includes (placementpolicy/web)"),
        (
            Mode.SINGLE,
            f"first pod of {workload}, which chooses the cluster of all (placementpolicy/web)",
        ),
    ):
        env.policy.policy = spread(mode=mode)
        explain = env.cycle(of_web("q")).state.outcome.explain
        assert explain is not None
        assert explain("a") == expected

    env.cache.set_pod(of_web("r", node="a"))
    explain = env.cycle(of_web("q")).state.outcome.explain
    assert explain is not None
    assert explain("a") == f"with the other pods of {workload} (placementpolicy/web)"


def test_without_a_policy_there_is_no_reason() -> None:
    assert PluginEnvironment(None, a=AMPLE).cycle(of_web("p")).state.outcome is UNPLANNED


def test_a_cluster_that_was_not_decided_for_is_out_and_the_decision_is_named() -> None:
    named = DecisionReference(DecisionKind.PLACEMENT, "default", "gpu")
    decided = ClusterDecision(named, (DecidedCluster("a", frozenset("a")),))
    policy = replace(spread(entry("a"), entry("b")), decision=decided)
    env = PluginEnvironment(policy, a=AMPLE, b=AMPLE)
    result = env.cycle(of_web("p"))
    assert [node.name for node in result.feasible] == ["a"]
    message = "placementpolicy/web: placement/default/gpu selects other clusters"
    assert result.statuses["b"].message == message
    assert result.statuses["b"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    env.policy.policy = replace(policy, decision=ClusterDecision(named))
    result = env.cycle(of_web("p"))
    assert not result.feasible
    assert {status.message for status in result.statuses.values()} == {
        "placementpolicy/web: placement/default/gpu selects no clusters"
    }
