"""Conditions on numeric labels: amounts, not text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import properties
from vnode.api.errors import ConfigError

MEMORY = "example.com/memory"


def holds(operator: str, *values: str, label: str | None) -> bool:
    labels = {} if label is None else {MEMORY: label}
    return properties.compiled(MEMORY, operator, values).matches(labels)


@pytest.mark.parametrize(
    ("operator", "values", "matching", "others"),
    [
        ("Gt", ["400Gi"], ["512Gi", "1Ti"], ["400Gi", "409600Mi", "64Gi"]),
        ("Ge", ["400Gi"], ["409600Mi", "1Ti"], ["399Gi"]),
        ("Lt", ["1"], ["900m", "0"], ["1", "1000m", "2"]),
        ("Le", ["1"], ["1000m"], ["1001m"]),
        ("In", ["2Gi", "8"], ["2048Mi", "8.0"], ["2G"]),
    ],
)
def test_amounts_are_compared_with_their_units(
    operator: str, values: list[str], matching: list[str], others: list[str]
) -> None:
    assert all(holds(operator, *values, label=label) for label in matching)
    assert not any(holds(operator, *values, label=label) for label in [*others, "many", None])
    if operator == "In":
        assert not any(holds("NotIn", *values, label=label) for label in matching)
        assert all(holds("NotIn", *values, label=label) for label in [*others, "many", None])


def test_what_is_no_amount_exists_all_the_same() -> None:
    assert holds("Exists", label="many")
    assert not holds("DoesNotExist", label="many")
    assert holds("DoesNotExist", label=None)
    assert not holds("Exists", label=None)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_each_amount_is_below_equal_or_above(amount: int, bound: int) -> None:
    results = {op: holds(op, str(bound), label=f"{amount}000m") for op in ("Lt", "Le", "Gt", "Ge")}
    assert results == {
        "Lt": amount < bound,
        "Le": amount <= bound,
        "Gt": amount > bound,
        "Ge": amount >= bound,
    }


@pytest.mark.parametrize(
    ("operator", "values", "cure"),
    [
        ("Above", ["1"], "none of Gt, Ge"),
        ("Gt", ["1", "2"], "needs one value"),
        ("Gt", [], "needs one value"),
        ("In", [], "needs values"),
        ("Exists", ["1"], "takes no values"),
        ("Lt", ["much"], 'property "example.com/memory": "much" is not a quantity'),
    ],
)
def test_a_wrong_condition_says_what_to_write(operator: str, values: list[str], cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        properties.compiled(MEMORY, operator, values)
