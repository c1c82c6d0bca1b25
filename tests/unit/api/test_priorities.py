"""Which PriorityClass of a target stands for that of a pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.class_names import UNKNOWN, ClassNames, PriorityValue
from vnode.api.priorities import PriorityMapping

VALUES = {
    "low": PriorityValue(10),
    "mid": PriorityValue(100),
    "also-mid": PriorityValue(100),
    "polite": PriorityValue(90, never=True),
    "system-node-critical": PriorityValue(2_000_001_000),
}
CLASSES = ClassNames(frozenset(), frozenset(VALUES), VALUES)


def spec(name="", priority=0, **fields):
    return {"priorityClassName": name, "priority": priority, **fields}


def chosen(spec, pairs=None, classes=CLASSES):
    found = PriorityMapping(pairs or {}, classes).choose(spec)
    return found.refusal or found.name


@pytest.mark.parametrize("classes", [CLASSES, UNKNOWN])
def test_a_class_of_the_pods_name_is_taken_whatever_its_value(classes):
    assert chosen(spec("low", 10_000), classes=classes) == "low"
    assert chosen(spec(), classes=classes) == ""
    assert chosen(spec("system-cluster-critical", 2_000_000_000)) == "system-cluster-critical"


def test_the_map_has_the_first_word_and_its_own_refusal():
    pairs = {"low": "mid", "urgent": "high", "": "low", "batch": ""}
    assert chosen(spec("low"), pairs) == "mid"
    assert chosen(spec(), pairs) == "low"
    assert chosen(spec("batch", 3), pairs) == ""
    refusal = 'PriorityClass "high" for pods of "urgent" not found: create it in the target'
    assert chosen(spec("urgent", 1000), pairs) == refusal
    refusal = 'PriorityClass "high" for pods without one not found: create it in the target'
    assert chosen(spec(), {"": "high"}) == refusal
    assert chosen(spec("urgent"), pairs, UNKNOWN) == "high"


@pytest.mark.parametrize(
    ("priority", "name"),
    [(10, "low"), (99, "low"), (100, "also-mid"), (2_100_000_000, "also-mid")],
)
def test_where_the_class_is_missing_the_nearest_that_is_not_higher_stands_for_it(priority, name):
    assert chosen(spec("urgent", priority)) == name


@pytest.mark.parametrize(
    ("pod", "classes"),
    [
        (spec("urgent", 9), CLASSES),
        (spec("urgent", 100), ClassNames(frozenset(), frozenset({"low"}))),
        (spec("urgent", 89, preemptionPolicy="Never"), CLASSES),
    ],
    ids=["all are higher", "an agent without values", "those that are not preempt"],
)
def test_a_pod_without_a_class_is_not_sent(pod, classes):
    refusal = 'PriorityClass "urgent" not found: create it in the target'
    assert chosen(pod, classes=classes) == refusal


def test_a_pod_that_must_not_preempt_gets_no_class_that_does():
    never = {"preemptionPolicy": "Never"}
    assert chosen(spec("urgent", 100, **never)) == "polite"
    assert chosen(spec("polite", 90, **never)) == "polite"
    assert chosen(spec("low", 10, **never)).startswith('PriorityClass "low" preempts in the target')


@given(
    st.integers(-5, 5),
    st.booleans(),
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.builds(PriorityValue, st.integers(-5, 5), st.booleans())
    ),
)
def test_no_pod_gains_by_travelling_and_none_could_lose_less(priority, never, values):
    pod = spec("urgent", priority, **({"preemptionPolicy": "Never"} if never else {}))
    found = PriorityMapping(classes=ClassNames(frozenset(), frozenset(values), values)).choose(pod)
    fitting = [v.value for v in values.values() if v.value <= priority and v.never == never]
    assert bool(found.refusal) == (not fitting)
    if fitting:
        assert values[found.name] == PriorityValue(max(fitting), never)
