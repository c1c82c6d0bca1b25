"""What `run` says of a command that failed."""

from __future__ import annotations

import pytest

from vnode.kubelet import queries, run
from vnode.kubelet.refusal import Refused

EXITED = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}


@pytest.mark.parametrize(
    ("status", "printed", "expected"),
    [
        (EXITED, "oh no", "command 'sh -x' exited with 3: oh no"),
        ({"status": "Failure", "message": "no such container"}, "", "no such container"),
        ({}, "", "the command failed"),
        ({"message": 1, "details": "x"}, "", "the command failed"),
    ],
)
def test_a_failure_is_told_as_a_kubelet_tells_it(status, printed: str, expected: str):
    assert run.failure(["sh", "-x"], status, printed) == expected


def test_a_command_has_no_more_arguments_than_are_taken():
    assert len(queries.split_command(" " * (queries.MOST - 1))) == queries.MOST
    with pytest.raises(Refused, match="10001 arguments"):
        queries.split_command(" " * queries.MOST)
