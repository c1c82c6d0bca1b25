from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import pod, virtual_node
from vnode.api.objects import Object
from vnode.scheduling import repelling_terms, selector_counts
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import Handle

WEB, DATABASE = {"app": "web"}, {"app": "db"}
ALL = {"a", "b", "c", "nowhere"}


@pytest.fixture
def plugin() -> InterPodAffinity:
    return made(crosses=False)


def made(*, crosses: bool) -> InterPodAffinity:
    args = InterPodAffinityArgs(cross_namespace_anti_affinity=crosses)
    return InterPodAffinity(args, Handle(namespace_refusal=any_namespace))


def term(labels: dict[str, str] | None = None, **fields: Any) -> Object:
    selector = {"labelSelector": {"matchLabels": labels}} if labels else {}
    return {"topologyKey": "region", **selector, **fields}


def near(*terms: Object) -> Object:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: Object) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def wished(kind: str, weight: int, wanted: Object) -> Object:
    wish = {"weight": weight, "podAffinityTerm": wanted}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def env(*placed: Object) -> Cache:
    """Return two nodes in region `r1`, one in `r2`, one without a region."""
    cache = Cache()
    for name, region in (("a", "r1"), ("b", "r1"), ("c", "r2"), ("nowhere", "")):
        cache.update_node(virtual_node(name, labels={"region": region} if region else {}))

    for one in placed:
        cache.set_pod(one)

    return cache


def passing(plugin: InterPodAffinity, cache: Cache, candidate: Object) -> set[str]:
    state, snapshot = CycleState(), cache.snapshot()
    outcome = plugin.pre_filter(state, candidate, snapshot)
    if outcome.is_skip:
        return {node.name for node in snapshot}

    assert outcome.is_success
    return {node.name for node in snapshot if plugin.filter(state, candidate, node).is_success}


@pytest.mark.parametrize(
    ("candidate", "node", "reason"),
    [
        (
            pod("p", labels=WEB, affinity=far(term(WEB))),
            "a",
            "didn't match pod anti-affinity rules (topologyKey region)",
        ),
        (
            pod("p", labels=DATABASE),
            "a",
            "didn't satisfy existing pods anti-affinity rules (topologyKey region)",
        ),
        (
            pod("p", affinity=near(term(DATABASE))),
            "a",
            "didn't match pod affinity rules (topologyKey region)",
        ),
        (
            pod("p", affinity=near(term(WEB))),
            "nowhere",
            "didn't match pod affinity rules (missing label region)",
        ),
    ],
)
def test_reasons_are_the_phrases_of_kube_scheduler(
    plugin: InterPodAffinity, candidate: Object, node: str, reason: str
) -> None:
    placed = pod("x", labels=WEB, node="a", affinity=far(term(DATABASE)))
    state, snapshot = CycleState(), env(placed).snapshot()
    assert plugin.pre_filter(state, candidate, snapshot).is_success
    chosen = snapshot.get(node)
    assert chosen is not None
    assert plugin.filter(state, candidate, chosen).message == reason


def test_anti_affinity_keeps_a_pod_away_from_places_with_those_it_names(
    plugin: InterPodAffinity,
) -> None:
    candidate = pod("p", labels=WEB, affinity=far(term(WEB)))
    assert passing(plugin, env(), candidate) == ALL
    assert passing(plugin, env(pod("x", labels=WEB, node="a")), candidate) == {"c", "nowhere"}
    assert passing(plugin, env(pod("x", labels=DATABASE, node="a")), candidate) == ALL


def test_a_placed_pod_keeps_those_away_whom_it_names(plugin: InterPodAffinity) -> None:
    guard = pod("x", labels=DATABASE, node="a", affinity=far(term(WEB)))
    assert passing(plugin, env(guard), pod("p", labels=WEB)) == {"c", "nowhere"}
    assert passing(plugin, env(guard), pod("p", labels=DATABASE)) == ALL
    assert passing(plugin, env(guard), pod("p", labels=WEB, namespace="other")) == ALL


EVERYBODY: dict[str, Any] = {"labelSelector": {}, "namespaceSelector": {}}


@pytest.mark.parametrize("whom", [EVERYBODY, {"labelSelector": {}, "namespaces": ["default"]}])
def test_a_pod_of_another_namespace_keeps_nobody_away_unless_the_operator_says_so(
    plugin: InterPodAffinity, whom: dict[str, Any]
) -> None:
    """Else a tenant could lock all others out of all targets, with one pod in each."""
    terms = far({"topologyKey": "region", **whom})
    cache = env(pod("x", node="a", namespace="hostile", affinity=terms))
    assert passing(plugin, cache, pod("p", labels=WEB)) == ALL
    assert passing(made(crosses=True), cache, pod("p", labels=WEB)) == {"c", "nowhere"}


def test_a_pod_keeps_itself_away_from_pods_of_other_namespaces(plugin: InterPodAffinity) -> None:
    cache = env(pod("x", node="a", namespace="other", labels=WEB))
    wary = pod("p", affinity=far({"topologyKey": "region", **EVERYBODY}))
    assert passing(plugin, cache, wary) == {"c", "nowhere"}


def test_equal_terms_of_two_namespaces_are_counted_apart() -> None:
    """The pod's own candidate is no reason against it, the other's pod at that place is."""
    terms = far({"topologyKey": "region", **EVERYBODY})
    candidate = pod("p", affinity=terms)
    cache = env(pod("x", node="a", namespace="other", affinity=terms))
    cache.assume(candidate, "a", 0)
    assert passing(made(crosses=True), cache, candidate) == {"c", "nowhere"}


def test_the_pods_own_candidates_are_no_reason_against_it(plugin: InterPodAffinity) -> None:
    candidate = pod("p", labels=WEB, affinity=far(term(WEB)))
    cache = env()
    cache.assume(candidate, "a", 0)
    assert passing(plugin, cache, candidate) == ALL
    twin = pod("q", labels=WEB, affinity=far(term(WEB)))
    assert passing(plugin, cache, twin) == {"c", "nowhere"}


def test_affinity_wants_one_of_those_it_names_at_the_place(plugin: InterPodAffinity) -> None:
    candidate = pod("p", labels=WEB, affinity=near(term(DATABASE)))
    assert passing(plugin, env(), candidate) == set()
    assert passing(plugin, env(pod("x", labels=DATABASE, node="a")), candidate) == {"a", "b"}


def test_the_first_of_pods_that_want_to_be_together_may_go_where_a_place_is(
    plugin: InterPodAffinity,
) -> None:
    candidate = pod("p", labels=WEB, affinity=near(term(WEB)))
    assert passing(plugin, env(), candidate) == {"a", "b", "c"}
    assert passing(plugin, env(pod("x", labels=WEB, node="c")), candidate) == {"c"}


def test_pods_must_match_all_terms_of_an_affinity_to_count(plugin: InterPodAffinity) -> None:
    candidate = pod("p", affinity=near(term(WEB), term({"tier": "front"}, topologyKey="region")))
    half = pod("x", labels=WEB, node="a")
    assert passing(plugin, env(half), candidate) == set()
    whole = pod("y", labels={**WEB, "tier": "front"}, node="c")
    assert passing(plugin, env(half, whole), candidate) == {"c"}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["default", "other"]}, True),
        ({"namespaceSelector": {}}, True),
    ],
)
def test_a_term_is_about_its_own_namespace_unless_it_says_so(
    plugin: InterPodAffinity, fields: Object, seen: bool
) -> None:
    cache = env(pod("x", labels=WEB, node="a", namespace="other"))
    candidate = pod("p", affinity=far(term(WEB, **fields)))
    assert passing(plugin, cache, candidate) == ({"c", "nowhere"} if seen else ALL)


def test_a_namespace_selector_is_a_reason_with_a_cure(plugin: InterPodAffinity) -> None:
    selector = {"matchLabels": {"team": "a"}}
    candidate = pod("p", affinity=far(term(WEB, namespaceSelector=selector)))
    outcome = plugin.pre_filter(CycleState(), candidate, env().snapshot())
    assert "list the namespaces instead" in outcome.message


@pytest.mark.parametrize("build", [far, near])
def test_terms_that_would_take_long_to_count_are_a_reason_with_a_cure(
    plugin: InterPodAffinity, build: Callable[..., Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting them anew is part of one cycle, in which nothing else happens."""
    monkeypatch.setattr(selector_counts, "MOST_COMPARED", 10)
    cache = env(*(pod(f"x{n}", labels={"n": str(n)}, node="a") for n in range(6)))
    everywhere = pod("p", affinity=build(term(WEB, namespaceSelector={})))
    outcome = plugin.pre_filter(CycleState(), everywhere, cache.snapshot())
    assert outcome.message.startswith("spec.affinity has too many expressions")
    elsewhere = pod("p", affinity=build(term(WEB, namespaces=["small"])))
    assert plugin.pre_filter(CycleState(), elsewhere, cache.snapshot()).is_success


def test_a_term_without_a_selector_selects_nothing(plugin: InterPodAffinity) -> None:
    cache = env(pod("x", labels=WEB, node="a"))
    assert passing(plugin, cache, pod("p", labels=WEB, affinity=far(term()))) == ALL
    assert passing(plugin, cache, pod("p", labels=WEB, affinity=near(term()))) == set()


@pytest.mark.parametrize(
    ("kind", "best"), [("podAffinity", {"a", "b"}), ("podAntiAffinity", {"c", "nowhere"})]
)
def test_preferences_score_by_the_pods_at_a_place(
    plugin: InterPodAffinity, kind: str, best: set[str]
) -> None:
    snapshot = env(pod("x", labels=WEB, node="a")).snapshot()
    state, candidate = CycleState(), pod("p", affinity=wished(kind, 10, term(WEB)))
    assert plugin.pre_score(state, candidate, snapshot, list(snapshot)).is_success
    scores = {node.name: plugin.score(state, candidate, node) for node in snapshot}
    plugin.normalize_score(state, candidate, scores)
    assert {name for name, score in scores.items() if score == 100} == best
    assert set(scores.values()) == {0, 100}


def test_pods_without_affinity_cost_nothing(plugin: InterPodAffinity) -> None:
    snapshot = env(pod("x", labels=WEB, node="a")).snapshot()
    assert plugin.pre_filter(CycleState(), pod("p", labels=WEB), snapshot).is_skip
    assert plugin.pre_score(CycleState(), pod("p"), snapshot, list(snapshot)).is_skip


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["a", "b", "c", ""]), st.booleans()),
        max_size=30,
    )
)
def test_whoever_keeps_others_away_does_so_exactly_as_long_as_it_is_there(
    steps: list[tuple[str, str, bool]],
) -> None:
    """Pods come, move on and go; `repelling` is what a full count gives."""
    cache, there = env(), dict[str, str]()
    for uid, node, guards in steps:
        cache.remove_pod(uid)
        there.pop(uid, None)
        if node:
            cache.set_pod(pod(uid, node=node, affinity=far(term(WEB)) if guards else {}))
            if guards:
                there[uid] = node

    found = cache.snapshot().pod_counts.repelling.get("default")
    terms = found.against("default", WEB) if found else ()
    counted = {node: n for _term, nodes in terms for node, n in nodes.items()}
    assert counted == {node: list(there.values()).count(node) for node in set(there.values())}


def test_pods_of_a_namespace_with_too_many_terms_wait_and_no_others(
    plugin: InterPodAffinity,
) -> None:
    cache = env()
    for number in range(repelling_terms.MOST_COMPARED // 64 + 1):
        unlike = [
            {"key": "job", "operator": "NotIn", "values": [f"{number}-{n}"]} for n in range(32)
        ]
        terms = [
            {"topologyKey": "region", "labelSelector": {"matchExpressions": [each]}}
            for each in unlike
        ]
        cache.set_pod(pod(f"x{number}", node="a", affinity=far(*terms)))

    snapshot = cache.snapshot()
    refused = plugin.pre_filter(CycleState(), pod("p"), snapshot)
    assert "too many anti-affinity terms" in refused.message
    assert plugin.pre_filter(CycleState(), pod("p", namespace="other"), snapshot).is_skip
