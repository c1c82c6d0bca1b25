"""What an API server merges into label selectors is taken out again, and nothing else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import merged_selectors
from vnode.api.objects import Object

KEYS = ("app", "rev", "zone", "absent")
VALUES = st.sampled_from("abc")
LABELS = st.dictionaries(st.sampled_from(KEYS[:3]), VALUES)
EXPRESSION = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(("own", "other")),
        st.sampled_from(("In", "NotIn")),
        st.sampled_from((["a"], ["b"], ["a", "b"])),
    ),
    st.just({"key": "own", "operator": "Exists"}),
)


def selector_of(labels: dict[str, str], expressions: list[Object]) -> Object:
    kept: Object = {"matchLabels": labels, "matchExpressions": expressions}
    return {field: value for field, value in kept.items() if value}


SELECTORS = st.builds(
    selector_of,
    st.sampled_from(({}, {"own": "a"})),
    st.one_of(st.just([]), st.builds(lambda e: [e], EXPRESSION)),
)


def split(keys: list[str], most: int, match: int) -> Object:
    kept = {"matchLabelKeys": keys[:most][:match], "mismatchLabelKeys": keys[:most][match:]}
    return {field: value for field, value in kept.items() if value}


KEY_FIELDS = st.builds(split, st.permutations(KEYS), st.integers(0, 4), st.integers(0, 4))
TERMS = st.builds(
    lambda selector, keys: {"topologyKey": "t", "labelSelector": selector, **keys},
    SELECTORS,
    KEY_FIELDS,
)


def spec_of(terms: list[Object]) -> Object:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    spread = [{k: v for k, v in term.items() if k != "mismatchLabelKeys"} for term in terms]
    return {
        "containers": [],
        "affinity": {
            "nodeAffinity": {"any": "thing"},
            "podAffinity": {required: terms, preferred: weighted},
            "podAntiAffinity": {preferred: weighted},
        },
        "topologySpreadConstraints": spread,
    }


def merge(value: Any, labels: dict[str, str]) -> None:
    """Merge as the API server does at the creation of a pod, by Kubernetes' documentation."""
    if isinstance(value, list):
        for item in value:
            merge(item, labels)

    if not isinstance(value, dict):
        return

    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in value.get(field, ()):
            if key in labels:
                selector = value["labelSelector"]
                found = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*selector.get("matchExpressions", []), found]

    for inner in value.values():
        merge(inner, labels)


@given(st.lists(TERMS, max_size=3), LABELS)
def test_without_the_merge_a_pod_is_as_its_user_made_it(
    terms: list[Object], labels: dict[str, str]
) -> None:
    made = json.loads(json.dumps(spec_of(terms)))  # no term is in it twice
    stored = copy.deepcopy(made)
    merge(stored, labels)
    before = copy.deepcopy(stored)
    assert merged_selectors.without(stored, labels) == made
    assert stored == before


@given(st.lists(TERMS, max_size=3), LABELS)
def test_what_was_never_merged_stays_the_same_object(
    terms: list[Object], labels: dict[str, str]
) -> None:
    made = spec_of(terms)
    assert merged_selectors.without(made, labels) is made


def term(*expressions: Object, **keys: Any) -> Object:
    return {"labelSelector": {"matchExpressions": list(expressions)}, **keys}


def test_a_label_that_has_changed_since_the_merge_counts_as_it_was() -> None:
    merged = {"key": "rev", "operator": "In", "values": ["1"]}
    spec = {"topologySpreadConstraints": [term(merged, matchLabelKeys=["rev"])]}
    (left,) = merged_selectors.without(spec, {"rev": "2"})["topologySpreadConstraints"]
    assert left == {"labelSelector": {}, "matchLabelKeys": ["rev"]}


@pytest.mark.parametrize("value", ["a", "b"])
def test_of_a_key_that_pods_are_to_differ_in_the_users_own_expression_stays(value: str) -> None:
    own = {"key": "zone", "operator": "NotIn", "values": [value]}
    merged = {"key": "zone", "operator": "NotIn", "values": ["a"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    wanted = {required: [term(own, mismatchLabelKeys=["zone"])]}
    stored = {required: [term(own, merged, mismatchLabelKeys=["zone"])]}
    spec = {"affinity": {"podAntiAffinity": stored}}
    assert merged_selectors.without(spec, {"zone": "a"})["affinity"]["podAntiAffinity"] == wanted


def test_a_key_whose_label_the_pod_does_not_have_was_not_merged() -> None:
    own = {"key": "rev", "operator": "In", "values": ["1"]}
    spec = {"topologySpreadConstraints": [term(own, matchLabelKeys=["rev"])]}
    assert merged_selectors.without(spec, {}) is spec
