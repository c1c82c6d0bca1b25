"""Parses Kubernetes quantities into exact Python integers.

"100m", "1Gi", "1e3" and 2 become a whole number of nano-units (10^-9): the API's own finest
resolution, so nothing is lost, and Python integers do not overflow as those of Go would (which cap
binary quantities at 2^63-1; a sum over a cluster may be more). An amount finer than a nano is
rounded away from zero, as Go does: a request for a little is not a request for nothing.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from vnode.api.errors import ConfigError

NANO: Final = 10**9
"""How many nano-units make one."""

_MILLI: Final = 10**6
_EXPONENT_LIMIT: Final = 64  # beyond any resource, and short of numbers that eat the memory
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_MULTIPLIERS: Final[dict[str, int]] = {
    **{suffix: NANO * 1024**power for power, suffix in enumerate(_BINARY)},
    **{suffix: 1000**power for power, suffix in enumerate(_DECIMAL)},
}
_PATTERN: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)


@functools.lru_cache(maxsize=4096)
def nano(quantity: str | float) -> int:
    """Return the quantity in nano-units. Raises ConfigError if it is none."""
    text = str(quantity)
    match = _PATTERN.fullmatch(text)
    if match is None or not (match["whole"] or match["fraction"]):
        raise ConfigError(f'"{text[:64]}" is not a quantity; write it like 100m, 1.5, 2Gi or 1e3')

    fraction = match["fraction"] or ""
    try:
        digits = int(match["whole"] + fraction)
        exponent = int(match["exponent"] or 0)
    except ValueError as error:  # Python refuses to read numbers of thousands of digits
        raise ConfigError(f'"{text[:64]}..." is too long for a quantity') from error

    if abs(exponent) > _EXPONENT_LIMIT:
        raise ConfigError(f'"{text[:64]}": the exponent must be within +-{_EXPONENT_LIMIT}')

    divisor = 10 ** (len(fraction) + max(0, -exponent))
    numerator = digits * _MULTIPLIERS[match["suffix"] or ""] * 10 ** max(0, exponent)
    amount: int = -(-numerator // divisor)
    return -amount if match["sign"] == "-" else amount


def milli(quantity: str | float) -> int:
    """Return the quantity in thousandths, rounded away from zero: how CPU is counted."""
    return round_away(nano(quantity), _MILLI)


def value(quantity: str | float) -> int:
    """Return the quantity in whole units, rounded away from zero: how all but CPU is counted."""
    return round_away(nano(quantity), NANO)


def round_away(amount: int, unit: int) -> int:
    """Return `amount / unit`, rounded away from zero."""
    return amount // unit if amount < 0 else -(-amount // unit)


def from_milli(amount: int) -> str:
    """Format thousandths as the API writes them: `1500m`, `2`, `12k`."""
    return _decimal(amount * _MILLI)


def from_value(amount: int, *, binary: bool = False) -> str:
    """Format whole units as the API writes them: `110`, `5k`, or `16Gi` if `binary`."""
    return format_nano(amount * NANO, binary=binary)


def format_nano(amount: int, *, binary: bool = False) -> str:
    """Format nano-units in the API's canonical form: the largest suffix with a whole number.

    As in Go, amounts under 1024 and fractions are written decimally even if `binary`.
    """
    if not binary or abs(amount) < 1024 * NANO or amount % NANO:
        return _decimal(amount)

    return _suffixed(amount // NANO, 1024, _BINARY)


def _decimal(amount: int) -> str:
    return _suffixed(amount, 1000, _DECIMAL) if amount else "0"


def _suffixed(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    power = 0
    while power < len(suffixes) - 1 and amount % base == 0:
        amount //= base
        power += 1

    return f"{amount}{suffixes[power]}"
