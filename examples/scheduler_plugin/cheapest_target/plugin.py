"""Filter and Score by the price that a target's nodes carry as a label, in whole units."""

from __future__ import annotations

import msgspec

from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import MAX_SCORE, FilterPlugin, ScorePlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class CheapestTargetArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the configuration may set under `args`."""

    label: str = "example.com/price"
    max_price: int = 1000
    """Targets above it are refused, and so are targets without the label."""


class CheapestTarget(FilterPlugin, ScorePlugin):
    """The cheaper, the better."""

    NAME = "CheapestTarget"
    Args = CheapestTargetArgs

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Only another price can undo a rejection."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.NODE_LABELS),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """A no says what the user can do about it."""
        price = self._price(node)
        if price is None:
            return status.unresolvable(f"has no price; label its nodes with {self.args.label}")

        if price > self.args.max_price:
            return status.unresolvable(f"costs {price}, more than {self.args.max_price}")

        return SUCCESS

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """The price; `normalize_score` turns it round."""
        return self._price(node) or 0

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """The cheapest gets 100, one of twice its price 50."""
        cheapest = min(scores.values())
        for name, price in scores.items():
            scores[name] = MAX_SCORE * cheapest // price if price else MAX_SCORE

    def _price(self, node: VirtualNodeInfo) -> int | None:
        text = node.labels.get(self.args.label, "")
        return int(text) if text.isdecimal() else None
