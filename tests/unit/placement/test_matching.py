"""Which policy is a pod's: by label, then namespace, priority and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, selectors
from vnode.api.objects import Object
from vnode.placement.policies.matching import PolicyIndex
from vnode.planning.policy import Policy


def local(name: str, selector: str | None = "", priority: int = 0) -> Policy:
    compiled = None if selector is None else selectors.parse(selector)
    return Policy(f"placementpolicy/{name}", "team-a", compiled, priority=priority)


def everywhere(
    name: str,
    selector: str | None = "",
    priority: int = 0,
    namespaces: frozenset[str] = frozenset(),
    *,
    joinable: bool = True,
) -> Policy:
    compiled = None if selector is None else selectors.parse(selector)
    name = f"clusterplacementpolicy/{name}"
    return Policy(name, "", compiled, priority=priority, namespaces=namespaces, joinable=joinable)


def pod(namespace: str = "team-a", **labels: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": "p", "labels": labels}}


def naming(key: str, name: str) -> Object:
    return {"metadata": {"namespace": "team-a", "name": "p", "labels": {key: name}}}


def test_a_policy_of_the_namespace_wins_over_a_cluster_wide_one() -> None:
    index = PolicyIndex([everywhere("a", priority=9), local("b")])
    assert index.of(pod()) == local("b")
    assert index.of(pod("team-b")) == everywhere("a", priority=9)


def test_then_the_higher_priority_then_the_name() -> None:
    index = PolicyIndex([local("b"), local("c", priority=1), local("a"), local("d", priority=1)])
    assert index.of(pod()) == local("c", priority=1)


def test_a_label_wins_over_selectors() -> None:
    index = PolicyIndex([local("a", priority=9), local("b", None), everywhere("c", None)])
    assert index.of(naming(keys.PLACEMENT_POLICY, "b")) == local("b", None)
    assert index.of(naming(keys.CLUSTER_PLACEMENT_POLICY, "c")) == everywhere("c", None)


def test_a_label_that_names_no_policy_is_as_if_it_were_not_there() -> None:
    index = PolicyIndex([local("a"), everywhere("b", None)])
    assert index.of(naming(keys.PLACEMENT_POLICY, "b")) == local("a")
    assert PolicyIndex([local("a", None)]).of(naming(keys.PLACEMENT_POLICY, "b")) is None


def test_a_pod_joins_a_cluster_wide_policy_by_a_label_only_if_that_lets_it() -> None:
    """Else any tenant would use up what an administrator's policy bounds."""
    bounded = everywhere("slow", "tier=slow", joinable=False)
    named = naming(keys.CLUSTER_PLACEMENT_POLICY, "slow")
    assert PolicyIndex([bounded]).of(named) is None
    assert PolicyIndex([bounded]).of(pod(tier="slow")) == bounded


def test_a_cluster_wide_policy_is_for_the_namespaces_that_it_lists() -> None:
    theirs = everywhere("a", "", namespaces=frozenset({"team-b"}))
    assert PolicyIndex([theirs]).of(pod()) is None
    assert PolicyIndex([theirs]).of(naming(keys.CLUSTER_PLACEMENT_POLICY, "a")) is None
    assert PolicyIndex([theirs]).of(pod("team-b")) == theirs


def test_a_policy_without_a_selector_is_for_those_that_name_it() -> None:
    assert PolicyIndex([local("a", None), everywhere("b", None)]).of(pod(app="web")) is None


def test_labels_of_pods_select() -> None:
    index = PolicyIndex([local("a", "app=web,tier!=test"), local("b", "app in (web,db)")])
    assert index.of(pod(app="web")) == local("a", "app=web,tier!=test")
    assert index.of(pod(app="web", tier="test")) == local("b", "app in (web,db)")
    assert index.of(pod(app="batch")) is None


NAMES = st.sampled_from("abcd")
TERMS = st.sampled_from(["x=1", "x=2", "y=1", "x in (1,2)", "!y", "x!=1", "y"])
SELECTORS = st.none() | st.lists(TERMS, max_size=2).map(",".join)
POLICIES = st.builds(local, NAMES, SELECTORS, st.integers(0, 2)) | st.builds(
    everywhere,
    NAMES,
    SELECTORS,
    st.integers(0, 2),
    st.frozensets(st.sampled_from(["team-a", "team-b"])),
    joinable=st.booleans(),
)
SPACES = st.sampled_from(["team-a", "team-b"])
LABELS = st.dictionaries(
    st.sampled_from(["x", "y", keys.PLACEMENT_POLICY, keys.CLUSTER_PLACEMENT_POLICY]),
    st.sampled_from(["1", "2", "a", "b"]),
)


def first(
    policies: Iterable[Policy], labels: dict[str, str], namespace: str = "team-a"
) -> Policy | None:
    """Search slowly."""
    policies = [
        policy
        for policy in policies
        if policy.namespace in ("", namespace)
        and (not policy.namespaces or namespace in policy.namespaces)
    ]

    def rank(policy: Policy) -> tuple[bool, int, str]:
        return not policy.namespace, -policy.priority, policy.name

    def is_named(policy: Policy) -> bool:
        key = keys.PLACEMENT_POLICY if policy.namespace else keys.CLUSTER_PLACEMENT_POLICY
        return policy.joinable and policy.name.partition("/")[2] == labels.get(key)

    named = sorted(filter(is_named, policies), key=rank)
    selecting = [p for p in policies if p.selector is not None and p.selector.matches(labels)]
    return next(iter(named + sorted(selecting, key=rank)), None)


@given(st.lists(POLICIES, max_size=8, unique_by=lambda p: p.name), LABELS, SPACES)
def test_it_is_the_first_of_a_slow_search(
    policies: list[Policy], labels: dict[str, str], namespace: str
) -> None:
    found = PolicyIndex(policies).of({"metadata": {"namespace": namespace, "labels": labels}})
    assert found == first(policies, labels, namespace)


ASKED = st.lists(st.tuples(SPACES, LABELS), max_size=3)


@given(st.lists(st.tuples(POLICIES, st.booleans(), ASKED), max_size=20))
def test_what_was_found_before_a_change_is_found_anew(
    steps: list[tuple[Policy, bool, list[tuple[str, dict[str, str]]]]],
) -> None:
    index, there = PolicyIndex(), dict[str, Policy]()
    for policy, is_there, asked in steps:
        if is_there:
            there[policy.name] = policy
            index.set(policy)
        else:
            there.pop(policy.name, None)
            index.remove(policy)

        for namespace, labels in asked:
            found = index.of({"metadata": {"namespace": namespace, "labels": labels}})
            assert found is first(there.values(), labels, namespace)


def test_selectors_are_compared_with_labels_only_if_something_may_be_another() -> None:
    compared = list[str]()

    class Counting(selectors.Selector):
        def matches(self, labels: Mapping[str, str]) -> bool:
            compared.append(str(self.requirements))
            return super().matches(labels)

    def counting(name: str, text: str) -> Policy:
        selector = Counting(selectors.parse(text).requirements)
        return Policy(f"placementpolicy/{name}", "team-a", selector)

    index = PolicyIndex(counting(f"p{number}", "x") for number in range(50))
    index.of(pod(app="web"))
    assert len(compared) == 50
    index.of(pod(app="web"))
    index.set(counting("p9", "app"))
    found = index.of(pod(app="web"))
    assert found is not None
    assert found.name == "placementpolicy/p9"
    assert len(compared) == 51
