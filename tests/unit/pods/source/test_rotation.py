"""Further candidates are bounded, and no namespace uses up those of another."""

from __future__ import annotations

from tests.unit.scheduling.builders import pod
from vnode.api import keys
from vnode.pods.source import rotation
from vnode.pods.source.rotation import Rotation
from vnode.runtime.links import Links
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.result import CycleResult
from vnode.scheduling.status import SUCCESS

RESULT = CycleResult(SUCCESS, (), {}, ("b",), frozenset(), CycleState())


def further(turns: Rotation, namespace: str, number: int, now: float) -> int:
    """Count the further candidates that so many pods get, of a target that they have not asked."""
    found = 0
    for index in range(number):
        uid = f"{namespace}-{index}"
        proxy = pod(uid, namespace=namespace, schedulerName=keys.PROXY_SCHEDULER)
        queued = QueuedPod(proxy, uid, 0, now, asked={"a": 0.0})
        found += len(turns.next(queued, RESULT, now))

    return found


def test_pods_of_a_namespace_get_further_candidates_though_another_has_used_up_all() -> None:
    turns = Rotation(Links())
    used = further(turns, "crowd", 2000, 0.0)
    assert used == rotation.BURST + rotation.OWN_BURST
    assert further(turns, "quiet", 3, 0.0) == 3
    busy = sum(further(turns, "crowd", 2000, 60.0 + second) for second in range(60))
    assert busy <= 2 * (60 * rotation.RATE + rotation.OWN_PER_MINUTE) + rotation.OWN_BURST
    assert further(turns, "quiet", 3, 120.0) == 3
