"""The names of classes in a ClusterSummary: bounded, and of no effect where they make no sense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import class_names
from vnode.api.class_names import UNKNOWN, ClassNames

NAMES = st.none() | st.frozensets(st.text("abc-", min_size=1, max_size=20), max_size=20)


@given(NAMES, NAMES)
def test_what_is_written_is_read(runtime, priority):
    assert class_names.decode(class_names.encode(runtime, priority)) == ClassNames(
        runtime, priority
    )


def test_a_list_that_is_too_long_is_left_out_and_the_other_one_stays():
    many = [f"class-{number:060d}" for number in range(1000)]
    text = class_names.encode(many, ["high"])
    assert class_names.decode(text) == ClassNames(None, frozenset({"high"}))
    assert class_names.encode(many, many) == ""


@pytest.mark.parametrize(
    "said",
    [
        *(None, 3, "", "{", "[]", '{"runtimeClasses": "gvisor"}', '{"runtimeClasses": [1]}'),
        '{"runtimeClasses": [' + ",".join(['"a"'] * 20_000) + "]}",
        "[" * 10_000,
    ],
    ids=["nothing", "number", "empty", "cut", "list", "text", "numbers", "long", "deep"],
)
def test_what_a_target_says_without_sense_is_as_if_it_said_nothing(said):
    assert class_names.decode(said) is UNKNOWN
