"""Computes with scores of clusters: from -100, the worst, over 0 to 100. Pure, in integers.

`absolute` and `relative` make scores of amounts, `combined` makes one number of weighted scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from vnode.api.cluster_scores import HIGHEST, LOWEST

_RANGE: Final = HIGHEST - LOWEST


def absolute(amount: int, most: int) -> int:
    """Return the score of an amount on a scale from 0 to `most`, rounded towards 0."""
    if amount <= 0:
        return LOWEST

    if amount >= most:
        return HIGHEST

    return _truncated(_RANGE * amount + LOWEST * most, most)


def relative(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the score of each amount on a scale from the least to the most of them.

    They are rounded towards 0. Where all are equal, each is as good as can be.
    """
    if not amounts:
        return {}

    least = min(amounts.values())
    width = max(amounts.values()) - least
    if not width:
        return dict.fromkeys(amounts, HIGHEST)

    return {
        key: _truncated(_RANGE * (amount - least) + LOWEST * width, width)
        for key, amount in amounts.items()
    }


def combined(scores: Iterable[tuple[int, int]]) -> int:
    """Return weights with scores as one number from 0 to 100, rounded up from a half.

    A negative weight turns its score round. Without any weight it is 50, the middle.
    """
    total = weights = 0
    for weight, score in scores:
        total += weight * score
        weights += abs(weight)

    return (total + (HIGHEST + 1) * weights) // (2 * weights) if weights else HIGHEST // 2


def _truncated(numerator: int, denominator: int) -> int:
    whole = abs(numerator) // denominator
    return -whole if numerator < 0 else whole
