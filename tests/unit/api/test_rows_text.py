"""Rows that another cluster has written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import rows_text

GOOD: dict[str, Any] = {
    "resources": ["cpu", "memory", "nvidia.com/gpu"],
    "units": [[1000, 2**30, 1]],
    "keys": ["nvidia.com/gpu.product"],
    "groups": [{"nvidia.com/gpu.product": "A100"}, {}],
    "taints": [[], [{"key": "team", "effect": "NoSchedule"}]],
    "rows": [[3, 0, 0, 1, 90, 900, 8], [1, 0, 1, 0, 4]],
    "nodes": 4,
    "complete": True,
    "v": 1,
}


def test_rows_are_read_as_they_are_described() -> None:
    found = rows_text.decode(json.dumps(GOOD))
    assert found
    plain, tainted = found.alike
    assert plain.is_plain
    assert plain.rows[0].free == {"cpu": 4000, "memory": 0, "nvidia.com/gpu": 0}
    assert plain.rows[0].most == {"cpu": 4999, "memory": 2**30 - 1, "nvidia.com/gpu": 0}
    assert tainted.labels == {"nvidia.com/gpu.product": "A100"}
    assert tainted.taints == ({"key": "team", "value": "", "effect": "NoSchedule"},)
    assert tainted.rows[0].count == 3
    assert tainted.rows[0].free == {"cpu": 90_000, "memory": 900 * 2**30, "nvidia.com/gpu": 8}
    assert (found.nodes, found.complete) == (4, True)


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"units": [[1000, 0, 1]]},
        {"units": [[1000]]},
        {"units": []},
        {"rows": [[1, 0, 2, 0]]},
        {"rows": [[1, 0, 0, -1]]},
        {"rows": [[0, 0, 0, 0]]},
        {"rows": [[1, 0, 0, 0, -4]]},
        {"rows": [[1, 0, 0, 0, 2**70]]},
        {"rows": [[1, 0, 0, 0, 1, 1, 1, 1]]},
        {"rows": [[1, 0]]},
        {"rows": [[1, 0, 0, 0, True]]},
        {"rows": [[9, 0, 0, 0]]},
        {"rows": [[1, 0, 0, 0]] * 257, "nodes": 999},
        {"rows": "many"},
        {"nodes": None},
        {"keys": ["k"] * 17},
        {"groups": [{"k": 1}]},
        {"taints": [[], [{"key": "a; b: fine", "effect": "NoSchedule"}]]},
        {"taints": [[], [{"key": "a", "value": "\n", "effect": "NoSchedule"}]]},
        {"taints": [[]] * 17},
        {"resources": ["cpu"] * 25},
    ],
)
def test_what_makes_no_sense_is_as_if_it_were_not_there(change: dict[str, Any]) -> None:
    assert rows_text.decode(json.dumps({**GOOD, **change})) is None


@pytest.mark.parametrize("text", [None, 3, "", "{", "[]", "{}", "[" * 30_000, "x" * 40_000])
def test_what_is_no_text_of_rows_is_as_if_it_were_not_there(text: object) -> None:
    assert rows_text.decode(text) is None


@given(st.text())
def test_no_text_does_harm(text: str) -> None:
    assert rows_text.decode(text) is None
