"""Names are listed as far as there is room."""

from __future__ import annotations

import pytest

from vnode.api import enumeration


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        (["a", "b", "c", "d"], "a, b and 2 more"),
    ],
)
def test_the_first_ones_are_named_and_the_others_counted(names: list[str], text: str) -> None:
    assert enumeration.some(names, 2) == text
