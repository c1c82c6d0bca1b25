"""What users meant to write: found where it is near, and left alone where it is not."""

from __future__ import annotations

import pytest

from vnode.api import keys, spelling
from vnode.api.objects import Object


def pod(annotation: str = "", label: str = "") -> Object:
    metadata: Object = {"annotations": {annotation: ""}} if annotation else {}
    return {"metadata": {**metadata, "labels": {label: ""} if label else {}}}


@pytest.mark.parametrize(
    "key",
    [
        "multicluster.admiralty.io/elected",
        "multicluster.admiralty.io/elct",
        "multicluster.admiralty.com/elect",
        "multicluster.admiralty.io.elect",
        "vnode.dev/elect",
    ],
)
def test_a_misspelt_election_is_found_as_an_annotation_and_as_a_label(key: str) -> None:
    assert key in spelling.meant_as_election(pod(key))
    assert key in spelling.meant_as_election(pod(label=key))


def test_a_label_that_should_be_an_annotation_is_found() -> None:
    assert "must be an annotation" in spelling.meant_as_election(pod(label=keys.ELECT))


KNOWN = [value for value in vars(keys).values() if isinstance(value, str) and "/" in value]


@pytest.mark.parametrize("key", [*KNOWN, "elect", "app", "kubernetes.io/elections", ""])
def test_other_keys_are_left_alone(key: str) -> None:
    assert spelling.meant_as_election(pod(key)) == ""


@pytest.mark.parametrize("value", ["", "true", "yes", "anything"])
def test_values_that_do_not_say_no_are_left_alone(value: str) -> None:
    annotations = {"metadata": {"annotations": {keys.ELECT: value, "example.com/x": "false"}}}
    assert list(spelling.warnings(annotations, elected=True)) == []


def test_of_very_many_keys_a_hundred_are_compared() -> None:
    others = {f"example.com/{n:019d}": "" for n in range(spelling.MOST_COMPARED)}
    short = {f"k{n}": "" for n in range(1000)}
    near = {"multicluster.admiralty.io/elct": ""}
    assert spelling.meant_as_election({"metadata": {"labels": {**short, **near}}})
    assert not spelling.meant_as_election({"metadata": {"labels": {**others, **near}}})
