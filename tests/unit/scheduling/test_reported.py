"""Reading what a target reports, from an agent of any version, or with bad intent."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.scheduling import reported


def summary(free: object) -> dict[str, object]:
    """Return a ClusterSummary with this word on what is free."""
    return {"metadata": {"annotations": {keys.FREE_RESOURCES: free}}}


def test_what_is_free_is_read_in_all_and_on_the_emptiest_node():
    both = reported.read_free(summary('{"sum": {"cpu": "3"}, "largest": {"cpu": "2"}}'))
    assert all(both)
    assert both[0] != both[1]


@pytest.mark.parametrize(
    "free",
    [None, 3, "", "{", "[]", '{"sum": {}}', '{"sum": 1, "largest": 1}', '{"a":' * 10_000],
    ids=["nothing", "number", "empty", "cut", "list", "half", "numbers", "deep"],
)
def test_what_a_target_says_without_sense_is_as_if_it_said_nothing(free: object):
    assert reported.read_free(summary(free)) == (None, None)


@pytest.mark.parametrize(
    ("rows", "nodes", "largest"),
    [
        ('[{"cpu": "2"}, {"cpu": "1"}]', "2", {"cpu": 2000}),
        ('[{"cpu": "2"}]', "9", {"cpu": 2000, "pods": 7}),
        ("[]", "0", None),
        ('["x"]', "1", None),
        ('[{"cpu": "much"}]', "1", None),
        ("3", "1", None),
        ('[{"cpu": "2"}]', '"x"', None),
        ('[{"cpu": "2"}]', "null", None),
        ('[{"cpu": "2"}]', "1e999", None),
        ("{}", "1", None),
    ],
)
def test_nodes_that_an_older_agent_lists_are_read_or_left(
    rows: str, nodes: str, largest: object
) -> None:
    text = f'{{"sum": {{}}, "largest": {{}}, "nodes": {nodes}, "rows": {rows}}}'
    found = reported.read_nodes(summary(text), None, None)
    assert (found and found.largest({"cpu": 2000, "pods": 7})) == largest
