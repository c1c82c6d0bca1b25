"""Terms are found as if all were compared, and who has too many of them holds up nobody else."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import selectors
from vnode.api.errors import ConfigError
from vnode.api.pod_terms import PodTerm
from vnode.scheduling.repelling_terms import MOST_COMPARED, RepellingTerms

KEPT_OFF = [
    selectors.parse(text)
    for text in ("", "app=web", "app!=web", "app in (web,db),!tier", "tier", "!app", "tier>1")
]
TERMS = st.builds(
    PodTerm,
    st.just("zone"),
    st.sampled_from(KEPT_OFF),
    st.sampled_from([None, frozenset(("team",)), frozenset(("other",))]),
)
PODS = st.lists(st.tuples(st.lists(TERMS, max_size=3, unique=True), st.sampled_from("nm")))
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["web", "db", "2"]))


def unlike(number: int, count: int) -> RepellingTerms:
    """Return terms of so many pods, by which each keeps off those without a certain value."""
    terms = RepellingTerms("team")
    for pod in range(count):
        terms.count(PodTerm("zone", selectors.parse(f"job!=j{number}-{pod}"), None), "n", 1)

    return terms


@given(PODS, st.data(), st.sampled_from(["team", "other"]), LABELS)
def test_the_terms_that_select_a_pod_are_found(pods, data, namespace, labels) -> None:
    terms, gone = RepellingTerms("team"), data.draw(st.integers(0, len(pods)))
    for has, node in pods:
        for term in has:
            terms.count(term, node, 1)

    for has, node in pods[:gone]:
        for term in has:
            terms.count(term, node, -1)

    expected: dict[PodTerm, Counter[str]] = {}
    for has, node in pods[gone:]:
        for term in has:
            if term.matches(namespace, labels):
                expected.setdefault(term, Counter())[node] += 1

    found = list(terms.against(namespace, labels))
    assert len(found) == len(expected)  # none twice
    assert dict(found) == expected
    assert bool(terms) == any(has for has, _node in pods[gone:])


def test_pods_that_keep_off_their_like_are_not_compared_with_each_other() -> None:
    terms = RepellingTerms("team")
    for number in range(2 * MOST_COMPARED):
        terms.count(PodTerm("zone", selectors.parse(f"job=j{number}"), None), "n", 1)

    labels = {"job": "j7", "app": "web"}
    terms.check(labels)
    assert [nodes for _term, nodes in terms.against("team", labels)] == [{"n": 1}]


def test_what_would_take_long_to_compare_is_refused_in_its_own_namespace() -> None:
    unlike(1, MOST_COMPARED // 2).check({})
    with pytest.raises(ConfigError, match="too many anti-affinity terms of pods that run"):
        unlike(1, MOST_COMPARED // 2 + 1).check({})


def test_terms_about_other_namespaces_cost_a_pod_nothing() -> None:
    terms = RepellingTerms("team")
    for number in range(MOST_COMPARED):
        selector = selectors.parse(f"job!=j{number}")
        terms.count(PodTerm("zone", selector, frozenset(("other",))), "n", 1)

    terms.check({"job": "j7"})
    assert not list(terms.against("team", {"job": "j7"}))
