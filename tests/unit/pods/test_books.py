"""What the scheduler is told of targets, by their ClusterSummaries."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.pods import books


def summary(free: object) -> dict[str, object]:
    """A ClusterSummary with this word on what is free."""
    return {"metadata": {"annotations": {keys.FREE_RESOURCES: free}}}


def test_what_is_free_is_read_in_all_and_on_the_emptiest_node():
    both = books.read_free(summary('{"sum": {"cpu": "3"}, "largest": {"cpu": "2"}}'))
    assert all(both)
    assert both[0] != both[1]


@pytest.mark.parametrize(
    "said",
    [None, 3, "", "{", "[]", '{"sum": {}}', '{"sum": 1, "largest": 1}', '{"a":' * 10_000],
    ids=["nothing", "number", "empty", "cut", "list", "half", "numbers", "deep"],
)
def test_what_a_target_says_without_sense_is_as_if_it_said_nothing(said: object):
    assert books.read_free(summary(said)) == (None, None)
