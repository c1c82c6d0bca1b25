"""The plugin ClusterScores: which targets are left out, and which are better."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api import cluster_scores, keys, objects
from vnode.api.cluster_scores import TargetScores
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.score_terms import ScoreReference, ScoreSource
from vnode.scheduling import config, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry

GPU = {"source": "AddOn", "resource": "usage", "name": "gpu"}
PRICE = {"source": "ClusterScore", "name": "price"}
NUMERIC = {"key": "size", "operator": "Gt", "values": ["1"]}
RATE = {"source": "Property", "name": "example.com/rate"}


class Fleet:
    """Targets with scores, and a framework that goes by these."""

    def __init__(self, **args: Any) -> None:
        self.clock = ManualClock()
        self.cache = Cache()
        self.used: list[ScoreReference] = []
        section = {
            "plugins": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "PrioritySort"}, {"name": "ClusterScores"}],
            },
            "pluginConfig": [{"name": "ClusterScores", "args": args}],
        }
        handle = Handle(
            namespace_refusal=any_namespace, clock=self.clock, use_score=self.used.append
        )
        self.framework: Framework = registry.build(
            config.load({"profile": section}).profile,
            Registry(defaults.PLUGINS),
            defaults.WEIGHTS,
            handle,
        )

    def target(self, name: str, *, ends: float = 0, rate: str = "", **scores: int) -> None:
        """Have a target that has these scores, which end some seconds from now, if they do."""
        until = objects.timestamp(self.clock.now() + timedelta(seconds=ends)) if ends else None
        said = {
            "scores": [{"name": n, "value": value} for n, value in scores.items()],
            "validUntil": until,
        }
        add_on = {"metadata": {"name": "usage", "namespace": name}, "status": said}
        own = {"metadata": {"name": name}, "spec": said}
        read = TargetScores(
            name,
            {"usage": cluster_scores.read_add_on(add_on)},
            (cluster_scores.read_own(own)[1],),
        )
        labels = {f"{keys.CLUSTER_PROPERTY}example.com_rate": rate} if rate else {}
        self.cache.update_node(virtual_node(name, labels=labels, scores=read))

    def scores(self, candidate: Object | None = None) -> dict[str, int]:
        """Return what each target gets that a pod may go to."""
        result = self.framework.schedule(candidate or pod("p"), self.cache.snapshot())
        return {each.name: each.scores.get("ClusterScores", -1) for each in result.feasible}

    def refusals(self) -> dict[str, str]:
        """Return why a pod may not go to a target."""
        result = self.framework.schedule(pod("p"), self.cache.snapshot())
        return {name: status.message for name, status in result.statuses.items()}


def test_the_best_score_wins_until_another_is_better() -> None:
    fleet = Fleet(scores=[GPU])
    fleet.target("c2", gpu=-70)
    fleet.target("c3", gpu=-80)
    assert fleet.scores() == {"c2": 15, "c3": 10}
    fleet.target("c2", gpu=-90)
    assert fleet.scores() == {"c2": 5, "c3": 10}


def test_a_negative_weight_turns_a_score_round() -> None:
    fleet = Fleet(scores=[{**GPU, "weight": -1}])
    fleet.target("c2", gpu=-70)
    fleet.target("c3", gpu=-80)
    assert fleet.scores() == {"c2": 85, "c3": 90}


def test_weights_add_up_over_kinds() -> None:
    fleet = Fleet(scores=[{**GPU, "weight": 3}, PRICE])
    fleet.target("a", gpu=40, price=-100)
    fleet.target("b")
    assert fleet.scores() == {"a": 53, "b": 50}
    assert {each.source for each in fleet.used} == {ScoreSource.ADD_ON, ScoreSource.CLUSTER_SCORE}


@pytest.mark.parametrize(
    ("missing", "weight", "scores"),
    [
        ("Neutral", 1, {"ended": 50, "good": 60}),
        ("Worst", 1, {"ended": 0, "good": 60}),
        ("Worst", -1, {"ended": 0, "good": 40}),
        ("Exclude", 1, {"good": -1}),
    ],
)
def test_what_has_ended_counts_as_is_said(
    missing: str, weight: int, scores: dict[str, int]
) -> None:
    fleet = Fleet(scores=[{**GPU, "weight": weight, "missing": missing}])
    fleet.target("good", gpu=20)
    fleet.target("ended", gpu=100, ends=60)
    assert len(fleet.scores()) == 2
    fleet.clock.seconds = 60
    assert fleet.scores() == scores
    why = "score gpu of addonplacementscore/ended/usage expired at 2026-01-01T00:01:00Z"
    assert fleet.refusals() == ({"ended": why} if missing == "Exclude" else {})


def test_a_condition_leaves_targets_out_and_says_why() -> None:
    fleet = Fleet(conditions=[{**GPU, "operator": "Ge", "values": [20]}])
    fleet.target("enough", gpu=20)
    fleet.target("little", gpu=19)
    fleet.target("none")
    assert set(fleet.scores()) == {"enough"}
    assert fleet.refusals() == {
        "little": "score gpu is not >= 20",
        "none": "score gpu is missing: addonplacementscore/none/usage has none of that name",
    }
    assert EventKind.TARGET_SCORES in {
        hint.kind for hint in fleet.framework.registrations()["ClusterScores"]
    }


def test_a_condition_may_accept_what_is_missing_and_the_pod_is_tried_again_when_it_ends() -> None:
    fleet = Fleet(conditions=[{**GPU, "operator": "Ge", "values": [20], "missing": "Accept"}])
    fleet.target("a", gpu=0, ends=30)
    result = fleet.framework.schedule(pod("p"), fleet.cache.snapshot())
    assert not result.feasible
    assert result.state.retry_at == 30
    fleet.clock.seconds = 30
    assert set(fleet.scores()) == {"a"}


def test_a_reserved_place_is_taken_whatever_has_become_of_the_score() -> None:
    fleet = Fleet(conditions=[{**GPU, "operator": "Ge", "values": [20]}])
    fleet.target("a", gpu=10)
    assert not fleet.scores()
    assert fleet.framework.check(pod("p"), fleet.cache.snapshot(), "a").is_success


def test_properties_are_compared_with_those_of_the_others() -> None:
    fleet = Fleet(
        scores=[{**RATE, "weight": -1, "missing": "Worst"}],
        conditions=[{**RATE, "operator": "Lt", "values": [40], "missing": "Accept"}],
    )
    fleet.target("cheap", rate="500m")
    fleet.target("dear", rate="2.5")
    fleet.target("dearest", rate="40")
    fleet.target("unknown", rate="a-lot")
    assert fleet.scores() == {"cheap": 100, "dear": 0, "unknown": 0}
    assert fleet.refusals() == {"dearest": "property example.com/rate is not < 40"}
    assert not fleet.used or all(each.source is ScoreSource.PROPERTY for each in fleet.used)


def test_free_room_is_compared_on_one_node_or_in_the_whole_cluster() -> None:
    def scores(scope: str) -> dict[str, int]:
        fleet = Fleet(scores=[{"source": "Free", "name": "nvidia.com/gpu", "scope": scope}])
        for name, free, largest in (("wide", 16, 2), ("tall", 8, 8), ("none", 0, 0)):
            fleet.target(name)
            gpus = ({"nvidia.com/gpu": free}, {"nvidia.com/gpu": largest})
            fleet.cache.update_free(name, *gpus)

        assert EventKind.TARGET_FREE in {
            hint.kind for hint in fleet.framework.registrations()["ClusterScores"]
        }
        return fleet.scores()

    assert scores("Cluster") == {"wide": 100, "tall": 50, "none": 0}
    assert scores("Node") == {"wide": 25, "tall": 100, "none": 0}


def test_an_entry_may_be_for_some_pods_only() -> None:
    gpus = {**GPU, "requesting": "nvidia.com/gpu"}
    batch = {**PRICE, "podSelector": {"matchLabels": {"app": "batch"}}}
    fleet = Fleet(
        scores=[gpus, batch, {**batch, "podSelector": {"matchLabels": {"app": "other"}}}],
        conditions=[{**gpus, "operator": "Gt", "values": [0]}],
    )
    fleet.target("a", gpu=100, price=-100)
    fleet.target("b", gpu=1, price=100)
    fleet.target("c", gpu=0, price=0)
    assert fleet.scores() == {"a": -1, "b": -1, "c": -1}
    assert fleet.scores(pod("p", labels={"app": "batch"})) == {"a": 0, "b": 100, "c": 50}
    requests = {"requests": {"nvidia.com/gpu": "1"}}
    wants_gpus = pod("p", containers=[{"name": "c", "resources": requests}])
    assert fleet.scores(wants_gpus) == {"a": 100, "b": 51}


@pytest.mark.parametrize(
    ("args", "cure"),
    [
        ({"scores": [{**GPU, "weight": 11}]}, "<= 10"),
        ({"scores": [{**GPU, "resource": ""}]}, "resource is the name of an AddOnPlacementScore"),
        ({"scores": [{**PRICE, "resource": "x"}]}, "with others it is left out"),
        ({"scores": [{**PRICE, "scope": "Node"}]}, "scope is for source Free: leave it out"),
        ({"scores": [PRICE, PRICE]}, "score price a second time"),
        (
            {"scores": [{**PRICE, "podSelector": {"matchExpressions": [NUMERIC]}}]},
            "scores[0].podSelector: Gt is not for labels",
        ),
        ({"scores": [{**PRICE, "name": ""}]}, "name is empty"),
        ({"scores": [{**PRICE, "source": "Gossip"}]}, "Invalid enum value 'Gossip'"),
        ({"scores": [{**PRICE, "name": str(n)} for n in range(17)]}, "over 16 entries"),
        ({"conditions": [{**PRICE, "operator": "Above"}]}, "is none of Gt, Ge"),
        ({"conditions": [{**PRICE, "operator": "Gt"}]}, "Gt needs one value"),
        (
            {"conditions": [{**PRICE, "operator": "Exists", "missing": "Accept"}]},
            "Exists says itself what is missing",
        ),
        ({"conditions": [{**PRICE, "operator": "Gt", "values": ["x"]}]}, "is not a quantity"),
        ({"score": []}, 'unknown field "score"'),
    ],
)
def test_what_is_wrong_is_refused_with_the_cure(args: dict[str, Any], cure: str) -> None:
    with pytest.raises(ConfigError, match=r".") as caught:
        Fleet(**args)

    assert cure in str(caught.value)


def test_without_arguments_it_does_nothing() -> None:
    fleet = Fleet()
    fleet.target("a")
    fleet.target("b")
    assert fleet.scores() == {"a": -1, "b": -1}
