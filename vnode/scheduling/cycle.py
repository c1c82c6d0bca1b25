"""Holds what plugins remember during one scheduling cycle.

PreFilter and PreScore compute once what Filter and Score then read for every node. A state belongs
to one attempt at one pod and is thrown away with it; extension points of the same attempt that run
later (Reserve to PostBind) get the same state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from vnode.api import resources
from vnode.api.objects import Object
from vnode.api.resources import Resources

_NOT_ASKED: Final[Mapping[str, float]] = MappingProxyType({})


def _nothing() -> None:
    """Do nothing."""


def _no_reason(_node: str) -> str:
    """Return "": the pod was planned for no node."""
    return ""


def _no_annotations(_node: str) -> Mapping[str, str]:
    """Return nothing to write."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutcome:
    """What a plugin that plans says of a pod's places, beyond what its Filter does."""

    kept: frozenset[str] = frozenset()
    """Nodes whose candidates stay, however many wait: the plan has chosen them."""
    better: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> better nodes, where candidates stay as placeholders if the pod is bound to it."""
    opens_more: bool = False
    """Further nodes will be opened to the pod if those that are have no room for it."""
    explain: Callable[[str], str] = _no_reason
    """Returns why the pod is placed on a node, in words; "" if the plan does not say."""
    annotations: Callable[[str], Mapping[str, str]] = _no_annotations
    """Returns what the binding to a node is to write on the pod."""
    record: Callable[[], None] = _nothing
    """Makes the plan that of the workload: the caller of the cycle calls it once, if it goes by
    its result."""


UNPLANNED: Final = PlanOutcome()
"""Of a pod that nobody plans."""


class CycleState:
    """A dict of what plugins remember, and the names of plugins that skip this pod."""

    __slots__ = (
        "_data",
        "_requests",
        "asked",
        "asks",
        "grows",
        "outcome",
        "reserved",
        "retry_at",
        "skip_filter",
        "skip_score",
    )

    def __init__(self, asked: Mapping[str, float] = _NOT_ASKED) -> None:
        # Node -> when (monotonic) an attempt that failed last asked its target for this pod.
        self.asked = asked
        # Whether a node that passes is asked for the pod; if not, doubts count against it.
        self.asks = True
        # The node that is chosen already: its target has a place for the pod, or for its gang.
        self.reserved = ""
        # Nodes that have no room, and whose targets may get some: a node pool grows.
        self.grows: set[str] = set()
        self._data: dict[str, Any] = {}
        self._requests: Resources | None = None
        # What comes of the plan for the pod.
        self.outcome: PlanOutcome = UNPLANNED
        # When (monotonic) to try the pod again at the latest if it finds no node; see `retry_by`.
        self.retry_at: float = math.inf
        # Names of plugins whose PreFilter returned SKIP: their Filter is not called for this pod.
        self.skip_filter: set[str] = set()
        # Likewise for PreScore and Score.
        self.skip_score: set[str] = set()

    def write(self, key: str, value: Any) -> None:
        """Remember `value`; keys are by custom the plugin's name."""
        self._data[key] = value

    def read(self, key: str) -> Any:
        """Return what was written under `key`; None if nothing was."""
        return self._data.get(key)

    def retry_by(self, moment: float) -> None:
        """Have the pod tried again at that moment (monotonic) if it is rejected now.

        Its back-off ends by then, but lasts as long as a first one in any case.
        """
        self.retry_at = min(self.retry_at, moment)

    def requests(self, pod: Object) -> Resources:
        """Return the pod's requests, computed once in a cycle."""
        if self._requests is None:
            self._requests = resources.pod_requests(pod)

        return self._requests
