"""Draws an override policy for all pods, and the moments at which it comes, changes and goes. Pure.

It sets an annotation of delegates, so that each shows by which rules it was made. A rule that is
none keeps pods from all targets for a while. It has a randomness of its own, like placement
policies.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vnode.api import kinds
from vnode.api.objects import Object

NAME: Final = "marks"
MARK: Final = "example.com/mark"  # an annotation
_SHARE: Final = 0.3  # of the schedules have any


@dataclass(frozen=True, slots=True)
class OverrideChange:
    """The policy as it is from then on; without a value it is deleted."""

    at: float
    value: str
    is_bad: bool = False

    def __str__(self) -> str:
        return f"+{self.at:.1f}s override policy {self.value or 'deleted'} bad={self.is_bad}"

    def object(self, namespace: str) -> Object:
        """Build the object."""
        rule: Object = {"image": "x"} if self.is_bad else {"annotations": {MARK: self.value}}
        return {
            "apiVersion": kinds.OVERRIDE_POLICIES.api_version,
            "kind": kinds.OVERRIDE_POLICIES.kind,
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {"selector": {}, "rules": [rule]},
        }


def draw(seed: int, moment: Callable[[], float]) -> tuple[OverrideChange, ...]:
    """Draw those of a seed; the last one is none that keeps pods away."""
    dice = random.Random(f"overrides {seed}")
    if dice.random() >= _SHARE:
        return ()

    moments = sorted(moment() for _ in range(dice.randint(1, 4)))
    changes = [
        OverrideChange(
            at,
            "" if dice.random() < 0.25 else f"mark-{number}",
            dice.random() < 0.2 and at != moments[-1],
        )
        for number, at in enumerate(moments)
    ]
    return tuple(changes)
