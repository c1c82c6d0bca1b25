"""Numbers that others wrote: whatever they wrote, it is a number or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import numbers


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1_0", "\u00b2", "\u0663", "9" * 19, "9" * 5000, "0x1"]
)
def test_what_is_no_number_is_none(text):
    assert numbers.natural(text) is None


@given(st.integers(0, 10**18 - 1))
def test_a_number_is_read(number):
    assert numbers.natural(str(number)) == number


def test_one_of_more_digits_than_it_may_have_is_none():
    assert numbers.natural("999", digits=3) == 999
    assert numbers.natural("1000", digits=3) is None


@given(st.text())
def test_nothing_is_an_error(text):
    numbers.natural(text)
