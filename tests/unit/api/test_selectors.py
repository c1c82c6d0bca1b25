from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import selectors
from vnode.api.errors import ConfigError
from vnode.api.requirements import MergedRequirements, Operator, Requirement
from vnode.api.selectors import Selector

LABELS = {"app": "web", "tier": "front", "gen": "3", "empty": ""}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("missing notin (web)", True),
        ("app", True),
        ("!app", False),
        ("! missing , app", True),
        ("gen>2", True),
        ("gen > 3", False),
        ("gen<4", True),
        ("app<4", False),
        ("missing>1", False),
        ("empty=", True),
        ("app=", False),
        ("empty in (,x)", True),
    ],
)
def test_the_string_form_matches(text: str, expected: bool) -> None:
    assert selectors.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize("text", ["app=web tier", "=web", "app in web", "app in (a", "a=b,", "a>x"])
def test_a_wrong_string_form_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="selector"):
        selectors.parse(text)


def test_match_labels_and_expressions_are_anded() -> None:
    selector = selectors.from_label_selector(
        {"matchLabels": {"app": "web"}, "matchExpressions": [expression("tier", "In", "front")]}
    )
    assert selector is not None
    assert selector.matches(LABELS)
    assert not selector.matches({"app": "web"})


def test_an_empty_label_selector_matches_all_and_an_absent_one_is_none() -> None:
    assert selectors.from_label_selector({}) == Selector()
    assert Selector().matches({})
    assert selectors.from_label_selector(None) is None


@pytest.mark.parametrize(
    "wrong",
    [
        expression("a", "Is", "b"),
        expression("a", "In"),
        expression("a", "Exists", "b"),
        expression("a", "Gt", "one"),
        expression("a", "Gt", "1", "2"),
    ],
)
def test_a_wrong_expression_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="selector"):
        selectors.from_label_selector({"matchExpressions": [wrong]})


def test_terms_of_a_node_selector_are_ored_and_an_empty_one_matches_nothing() -> None:
    selector = selectors.from_node_selector(
        {
            "nodeSelectorTerms": [
                {},
                {"matchExpressions": [expression("app", "In", "db")]},
                {
                    "matchExpressions": [expression("gen", "Gt", "2")],
                    "matchFields": [expression("metadata.name", "In", "n1")],
                },
            ]
        }
    )
    assert selectors.matches_node(selector, LABELS, "n1")
    assert not selectors.matches_node(selector, LABELS, "n2")
    assert selectors.matches_node(selector, {"app": "db"}, "n2")
    assert not selectors.matches_node(selectors.from_node_selector(None), LABELS, "n1")


def test_other_fields_than_the_name_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"metadata\.name"):
        selectors.from_term({"matchFields": [expression("spec.x", "In", "a")]})


WORDS = st.sampled_from(["a", "b", "c", "1", "-7"])


@given(
    st.dictionaries(WORDS, WORDS),
    WORDS,
    st.sampled_from(["In", "NotIn"]),
    st.sets(WORDS, min_size=1),
)
def test_in_and_not_in_are_each_others_opposite_and_equal_ones_hash_alike(
    labels: dict[str, str], key: str, operator: str, values: set[str]
) -> None:
    one = Selector(frozenset((Requirement(key, Operator(operator), frozenset(values)),)))
    other = Operator.NOT_IN if operator == "In" else Operator.IN
    assert one.matches(labels) != Requirement(key, other, frozenset(values)).matches(labels)
    written = f"{key} {operator.lower()} ({','.join(sorted(values))})"
    assert selectors.parse(written) == one
    assert hash(selectors.parse(written)) == hash(one)


def _requirement(key: str, operator: Operator, values: frozenset[str]) -> Requirement:
    has_values = operator in (Operator.IN, Operator.NOT_IN)
    return Requirement(key, operator, values if has_values else frozenset())


@given(
    st.frozensets(
        st.builds(
            _requirement,
            st.sampled_from(("a", "b")),
            st.sampled_from(
                (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
            ),
            st.frozensets(st.sampled_from(("x", "y", "z")), min_size=1),
        ),
        max_size=4,
    )
)
def test_a_selector_is_the_same_when_it_was_written_as_an_object(
    requirements: frozenset[Requirement],
) -> None:
    selector = Selector(requirements)
    assert selectors.from_label_selector(selectors.to_label_selector(selector)) == selector


def test_numbers_have_no_place_in_a_label_selector() -> None:
    with pytest.raises(ConfigError, match="Lt is not for labels"):
        selectors.to_label_selector(selectors.parse("a<3"))


KEYS, VALUES = (
    st.sampled_from([*LABELS, "missing", "other"]),
    st.sampled_from(["web", "3", "", "x"]),
)
REQUIREMENTS = st.builds(
    lambda key, operator, values: Requirement(
        key, operator, values if operator in (Operator.IN, Operator.NOT_IN) else frozenset()
    ),
    KEYS,
    st.sampled_from([each for each in Operator if each not in (Operator.GT, Operator.LT)]),
    st.frozensets(VALUES, min_size=1),
)


@given(
    st.frozensets(REQUIREMENTS, max_size=12),
    st.dictionaries(st.sampled_from([*LABELS, "missing"]), VALUES),
)
def test_requirements_that_are_merged_hold_for_the_same_labels(requirements, labels) -> None:
    expected = all(requirement.matches(labels) for requirement in requirements)
    assert MergedRequirements(requirements).matches(labels) is expected
    longer = Selector(requirements).also(
        Requirement(f"not-there-{n}", Operator.DOES_NOT_EXIST) for n in range(10)
    )
    assert longer.matches(labels) is expected
