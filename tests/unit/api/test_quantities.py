from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import quantities
from vnode.api.errors import ConfigError

# What apimachinery v0.36.3 makes of each: MilliValue, Value, String.
GO = [
    ("0", (0, 0, "0")),
    ("1", (1000, 1, "1")),
    ("100m", (100, 1, "100m")),
    ("1500m", (1500, 2, "1500m")),
    ("2000m", (2000, 2, "2")),
    ("1.5", (1500, 2, "1500m")),
    ("0.5", (500, 1, "500m")),
    ("1.5u", (1, 1, "1500n")),
    ("100n", (1, 1, "100n")),
    ("0.1n", (1, 1, "1n")),
    ("1n", (1, 1, "1n")),
    ("1k", (1000000, 1000, "1k")),
    ("1M", (1000000000, 1000000, "1M")),
    ("1Ki", (1024000, 1024, "1Ki")),
    ("1Mi", (1048576000, 1048576, "1Mi")),
    ("1Gi", (1073741824000, 1073741824, "1Gi")),
    ("1.5Gi", (1610612736000, 1610612736, "1536Mi")),
    ("0.5Ki", (512000, 512, "512")),
    ("-1", (-1000, -1, "-1")),
    ("-100m", (-100, -1, "-100m")),
    ("-1.5", (-1500, -2, "-1500m")),
    ("123456789", (123456789000, 123456789, "123456789")),
    ("1024", (1024000, 1024, "1024")),
    ("1000", (1000000, 1000, "1k")),
    ("1023Ki", (1047552000, 1047552, "1023Ki")),
    ("1024Ki", (1048576000, 1048576, "1Mi")),
    ("16393212Ki", (16786649088000, 16786649088, "16393212Ki")),
    (".5", (500, 1, "500m")),
    ("5Pi", (5629499534213120000, 5629499534213120, "5Pi")),
    ("3T", (3000000000000000, 3000000000000, "3T")),
    ("0.0001", (1, 1, "100u")),
    ("1001m", (1001, 2, "1001m")),
    ("999999999999n", (1000000, 1000, "999999999999n")),
    ("2.5Mi", (2621440000, 2621440, "2560Ki")),
    ("0.001Gi", (1073741824, 1073742, "1073741824m")),
    ("1048576", (1048576000, 1048576, "1048576")),
]

# Of these Go keeps the spelling with an exponent, which we have no need to write.
GO_EXPONENTS = [
    ("1e3", (1000000, 1000)),
    ("1E3", (1000000, 1000)),
    ("1e-3", (1, 1)),
    ("12e6", (12000000000, 12000000)),
    ("+1", (1000, 1)),
    ("1.", (1000, 1)),
]

WRONG = [
    "",
    "1e",
    "1 ",
    "1ki",
    "1KI",
    "--1",
    "1.2.3",
    "abc",
    "1e1.5",
    "\u0661",
    "1_000",
    "1Zi",
    "1m1",
]


@pytest.mark.parametrize(("text", "expected"), GO)
def test_reads_and_writes_what_go_does(text: str, expected: tuple[int, int, str]) -> None:
    milli, value, canonical = expected
    assert quantities.milli(text) == milli
    assert quantities.value(text) == value
    assert quantities.format_nano(quantities.nano(text), binary="i" in text) == canonical


@pytest.mark.parametrize(("text", "expected"), GO_EXPONENTS)
def test_reads_exponents_and_signs(text: str, expected: tuple[int, int]) -> None:
    assert (quantities.milli(text), quantities.value(text)) == expected


@pytest.mark.parametrize("text", [*WRONG, ".", "Gi", "1e999999999", "9" * 5000])
def test_what_is_no_quantity_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(ConfigError, match=r"quantity|exponent"):
        quantities.nano(text)


def test_numbers_need_no_quotes() -> None:
    assert quantities.value(2) == 2
    assert quantities.milli(0.5) == 500


def test_amounts_beyond_64_bits_stay_exact() -> None:
    assert quantities.milli("2E") == 2 * 10**21
    assert quantities.value("16Ei") == 2**64


@given(st.integers(-(10**30), 10**30), st.booleans())
def test_writing_and_reading_gives_the_same_amount(amount: int, binary: bool) -> None:
    assert quantities.nano(quantities.format_nano(amount, binary=binary)) == amount


@given(st.integers(-(10**21), 10**21))
def test_rounding_goes_away_from_zero_and_less_than_one_unit(amount: int) -> None:
    rounded = quantities.round_away(amount, quantities.NANO)
    assert 0 <= abs(rounded * quantities.NANO) - abs(amount) < quantities.NANO


@given(st.decimals(-(10**6), 10**6, places=9))
def test_decimal_fractions_are_read_exactly(amount: object) -> None:
    assert quantities.nano(f"{amount:f}") == int(amount * quantities.NANO)  # type: ignore[operator]
