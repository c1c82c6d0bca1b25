"""What the annotation of placeholders says, whoever wrote it."""

from __future__ import annotations

import pytest

from tests.unit.scheduling import costs
from vnode.api import keys, placeholders
from vnode.api.objects import Object


def proxy(value: str, node: str = "c", phase: str = "Running", **metadata: str) -> Object:
    return {
        "metadata": {"annotations": {keys.PLACEHOLDERS: value}, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("value", "nodes"),
    [("a,b", ("a", "b")), ("", ()), (",a,,a", ("a",)), ("c,a", ("a",)), ("c", ())],
)
def test_nodes_are_those_that_it_names_but_for_the_pods_own(
    value: str, nodes: tuple[str, ...]
) -> None:
    assert placeholders.of(proxy(value)) == nodes


def test_a_pod_that_ends_or_is_not_bound_has_none() -> None:
    assert not placeholders.of(proxy("a", node=""))
    assert not placeholders.of(proxy("a", phase="Succeeded"))
    assert not placeholders.of(proxy("a", deletionTimestamp="now"))
    assert not placeholders.of({"metadata": {}, "spec": {"nodeName": "c"}})


def test_their_number_is_bounded() -> None:
    many = [f"n{number}" for number in range(2 * placeholders.MOST)]
    assert placeholders.of(proxy(",".join(many))) == tuple(many[: placeholders.MOST])


def test_the_text_of_none_takes_the_annotation_away() -> None:
    assert placeholders.text([]) is None
    assert placeholders.of(proxy(placeholders.text(["a", "b"]) or "")) == ("a", "b")


def test_of_a_text_without_end_the_beginning_is_read_and_once() -> None:
    huge = proxy(",".join(f"n{number}" for number in range(50_000)))
    first = [f"n{number}" for number in range(placeholders.MOST)]
    assert costs.bytecodes(lambda: placeholders.of(huge)) < 100 * placeholders.MOST
    assert placeholders.of(huge) == tuple(first)
    assert costs.bytecodes(lambda: placeholders.of(huge)) < 25 * placeholders.MOST
    long = "n" * (placeholders.LONGEST + 1)
    assert placeholders.of(proxy(f"a,{long},b"))[0] == "a"
    assert "b" not in placeholders.of(proxy(f"a,{long},b"))
