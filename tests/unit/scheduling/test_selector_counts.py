"""Counts of selectors agree with the pods that are there, and no namespace takes another's room."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from tests.unit.scheduling.builders import pod
from vnode.api import selectors
from vnode.api.errors import ConfigError
from vnode.api.requirements import Operator, Requirement
from vnode.api.selectors import Selector
from vnode.scheduling.cache import Cache
from vnode.scheduling.selector_counts import (
    EXPRESSIONS,
    IDLE,
    KEPT,
    KEPT_ABROAD,
    MOST_COMPARED,
    SelectorCounts,
)

SELECTORS = [
    selectors.parse(text)
    for text in ("", "app=web", "app!=web", "app in (web,db),!tier", "tier", "!app", "tier>1")
]
Asked = tuple[frozenset[str] | None, Selector]
SCOPES = [None, frozenset("a"), frozenset("ab"), frozenset("c")]
PODS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["web", "db", "2"])),
        st.sampled_from(["n", "m"]),
    ),
    max_size=20,
)


@given(PODS, PODS, st.data())
def test_a_selector_counts_the_same_whenever_it_is_first_asked_for(before, after, data) -> None:
    counts = SelectorCounts()
    for namespace, labels, node in before:
        counts.count(namespace, labels, node, 1)

    asked = data.draw(st.lists(st.tuples(st.sampled_from(SCOPES), st.sampled_from(SELECTORS))))
    for scope, selector in asked:
        counts.of("a", scope, selector)

    for namespace, labels, node in after:
        counts.count(namespace, labels, node, 1)

    gone = data.draw(st.integers(0, len(before)))
    for namespace, labels, node in before[:gone]:
        counts.count(namespace, labels, node, -1)

    pods = [*before[gone:], *after]
    for scope in SCOPES:
        for selector in SELECTORS:
            expected = Counter(
                node
                for namespace, labels, node in pods
                if (scope is None or namespace in scope) and selector.matches(labels)
            )
            assert counts.of("b", scope, selector) == expected


@pytest.mark.parametrize(
    ("whose", "kept"), [("victim", KEPT_ABROAD), ("tenant", KEPT)], ids=["abroad", "own"]
)
def test_one_namespace_pushes_out_its_own_selectors_only(whose: str, kept: int) -> None:
    counts = SelectorCounts()
    web = selectors.parse("app=web")
    counts.of("victim", frozenset(("victim",)), web)
    for number in range(3 * KEPT):
        counts.of("tenant", frozenset((whose,)), selectors.parse(f"app=a{number}"))

    assert len(counts._asked["tenant", whose == "victim"]) == kept
    assert (frozenset(("victim",)), web) in counts._selected
    assert len(counts._selected) == kept + 1
    assert len(counts._about[whose]) == kept + (whose == "victim")


def test_few_long_selectors_of_a_namespace_are_kept_and_the_last_one_is() -> None:
    counts = SelectorCounts()
    for number in range(50):
        counts.of("tenant", None, long_selector(number, 330))
        kept = sum(len(each.selector.requirements) + 1 for each in counts._selected.values())
        assert kept <= EXPRESSIONS

    assert len(counts._selected) == EXPRESSIONS // 331
    counts.of("tenant", None, long_selector(99, 2 * EXPRESSIONS))
    assert len(counts._selected) == len(counts._about[""]) == 1


def test_what_nobody_asks_for_goes_and_what_is_asked_for_stays() -> None:
    counts = SelectorCounts()
    web, left = selectors.parse("app=web"), selectors.parse("app=left")
    for asker in ("a", "b"):
        counts.of(asker, None, left)

    for number in range(2 * IDLE):
        if number % (IDLE // 2) == 0:
            counts.of("a", None, web)

        counts.count("c", {"app": "web", "number": str(number)}, "n", 1)

    assert list(counts._selected) == list(counts._about[""]) == [(None, web)]
    assert {asker for asker, _abroad in counts._asked} == {"a"}
    assert counts.of("a", None, web) == {"n": 2 * IDLE}
    assert counts.of("a", None, left) == {}


def test_what_two_namespaces_ask_for_is_counted_once_and_stays_while_one_does() -> None:
    counts = SelectorCounts()
    web = selectors.parse("app=web")
    for asker in ("a", "b"):
        counts.of(asker, None, web)

    for number in range(KEPT_ABROAD):
        counts.of("a", None, selectors.parse(f"app=a{number}"))

    counts.count("c", {"app": "web"}, "n", 1)
    assert counts._selected[None, web].askers == {"b"}
    assert counts.of("b", None, web) == {"n": 1}
    for number in range(KEPT_ABROAD):
        counts.of("b", None, selectors.parse(f"app=b{number}"))

    assert (None, web) not in counts._selected


def test_terms_that_would_hold_up_everybody_are_refused() -> None:
    counts = SelectorCounts()
    for number in range(1000):
        counts.count("big", {"number": str(number)}, "n", 1)

    def about(scope: frozenset[str] | None, number: int) -> list[Asked]:
        return [(scope, selectors.parse(f"app!=a{n}")) for n in range(number)]

    most = MOST_COMPARED // 1000 // 2
    counts.check(about(None, most), "spec.affinity")
    with pytest.raises(ConfigError, match=r"^spec.affinity has too many expressions"):
        counts.check(about(None, most + 1), "spec.affinity")

    counts.check(about(frozenset(("small",)), most + 1), "spec.affinity")
    counts.check(about(None, 1) * 1000, "spec.affinity")  # the same one is counted once


def long_selector(number: int, length: int) -> Selector:
    return Selector(
        frozenset(Requirement(f"{number}-{n}", Operator.DOES_NOT_EXIST) for n in range(length))
    )


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    counts = SelectorCounts()
    counts.count("a", {"app": "web"}, "n", 1)
    counts.count("a", {"app": "web"}, "n", -1)
    assert not counts._sets
    assert counts._total == 0


def test_pods_of_tens_of_thousands_of_labels_are_not_compared_with_each_other() -> None:
    """Two with the same 30,000 labels took 25 ms each time that one of them came or went."""
    cache = Cache()
    labels = {f"{'l' * 40}{number}": f"value-{number}" for number in range(30_000)}
    pods = [pod(f"p{number}", node="a", labels=dict(labels)) for number in range(2)]
    cache.set_pod(pods[0])
    with computing.within(0.015):
        cache.set_pod(pods[1])

    app = selectors.from_labels({f"{'l' * 40}0": "value-0"})
    assert cache.snapshot().pod_counts.matching("default", app) == {"a": 2}
    with computing.within(0.015):
        cache.remove_pod("p0")

    assert cache.snapshot().pod_counts.matching("default", app) == {"a": 1}
    cache.set_pod({**pods[1], "spec": {**pods[1]["spec"], "nodeName": "b"}})
    assert cache.snapshot().pod_counts.matching("default", app) == {"b": 1}
    cache.remove_pod("p1")
    assert not cache.snapshot().pod_counts.selected._sets
