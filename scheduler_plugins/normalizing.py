"""Scales raw scores to 0..100."""

from __future__ import annotations

from vnode.scheduling.plugin import MAX_SCORE


def by_largest(scores: dict[str, int], *, reverse: bool = False) -> None:
    """Scale in place so that the largest becomes 100 and zero 0, or with `reverse` the other way.

    If all are zero there is nothing to prefer: all stay 0, or with `reverse` become 100.
    """
    largest = max(scores.values(), default=0)
    for name, score in scores.items():
        scaled = score * MAX_SCORE // largest if largest else 0
        scores[name] = MAX_SCORE - scaled if reverse else scaled
