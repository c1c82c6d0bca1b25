"""The names of classes in a ClusterSummary: bounded, and of no effect where they make no sense."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import class_names
from vnode.api.class_names import UNKNOWN, ClassNames, PriorityValue

NAMES = st.none() | st.frozensets(st.text("abc-", min_size=1, max_size=20), max_size=20)


VALUES = st.builds(PriorityValue, st.integers(-(2**31), 2**31 - 1), st.booleans())


DEVICES = st.none() | st.dictionaries(
    st.text("abc-", min_size=1, max_size=20), st.text("a/", max_size=9)
)


@given(NAMES, NAMES, st.dictionaries(st.text("abc-", min_size=1, max_size=20), VALUES), DEVICES)
def test_what_is_written_is_read(runtime, priority, values, devices):
    written = class_names.encode(runtime, priority, values, devices)
    assert class_names.decode(written) == ClassNames(runtime, priority, values, devices)


def test_an_agent_that_knows_no_values_is_read_and_reads_what_has_some():
    class Old(msgspec.Struct, frozen=True, rename="camel"):
        runtime_classes: frozenset[str] | None = None
        priority_classes: frozenset[str] | None = None

    text = class_names.encode(["kata"], ["high"], {"high": PriorityValue(7, never=True)})
    read = msgspec.json.decode(text, type=Old)
    assert read == Old(frozenset({"kata"}), frozenset({"high"}))
    encoded = msgspec.json.encode(read).decode()
    assert class_names.decode(encoded) == ClassNames(frozenset({"kata"}), frozenset({"high"}))


def test_values_are_left_out_before_names_are():
    names = [f"class-{number:030d}" for number in range(500)]
    text = class_names.encode([], names, {name: PriorityValue(1) for name in names})
    assert class_names.decode(text) == ClassNames(frozenset(), frozenset(names))


def test_a_list_that_is_too_long_is_left_out_and_the_other_one_stays():
    many = [f"class-{number:060d}" for number in range(1000)]
    text = class_names.encode(many, ["high"])
    assert class_names.decode(text) == ClassNames(None, frozenset({"high"}))
    assert class_names.encode(many, many) == ""


@pytest.mark.parametrize(
    "annotation",
    [
        *(None, 3, "", "{", "[]", '{"runtimeClasses": "gvisor"}', '{"runtimeClasses": [1]}'),
        '{"runtimeClasses": [' + ",".join(['"a"'] * 20_000) + "]}",
        "[" * 10_000,
    ],
    ids=["nothing", "number", "empty", "cut", "list", "text", "numbers", "long", "deep"],
)
def test_what_a_target_says_without_sense_is_as_if_it_said_nothing(annotation):
    assert class_names.decode(annotation) is UNKNOWN


def test_a_bad_entry_hides_no_other():
    text = (
        '{"runtimeClasses": ["gvisor", 1, null], "priorityClasses": "high",'
        ' "priorities": {"high": {"value": 7}, "low": {"value": "x"}, "odd": 3},'
        ' "deviceClasses": {"gpu": "example.com/gpu", "odd": 3}}'
    )
    found = class_names.decode(text)
    devices = {"gpu": "example.com/gpu", "odd": ""}
    assert found == ClassNames(frozenset({"gvisor"}), None, {"high": PriorityValue(7)}, devices)
