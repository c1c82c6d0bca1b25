"""What a policy says of clusters that are lost, and which ending pods wait for replacements. Pure.

Kubernetes makes a replacement as soon as a pod of a ReplicaSet is deleted, and does not wait for
it. The delegate of a pod that vnode itself has moved runs on until the replacement is ready. What
counts is how many pods of the owner are not: no replacement belongs to one pod, so they need not be
told apart, and there is nothing to remember.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from vnode.api.objects import Object
from vnode.planning.move_policy import STARTING

OWNER: Final = 60.0
"""Seconds after the deletion of a pod in which its owner makes another one, if it is to."""
DEFAULT_GRACE: Final = STARTING
LONGEST_GRACE: Final = 7 * 86400
"""Seconds that a policy may have pods wait at most."""
FAILOVER_REASON: Final = "DeletionByTaintManager"
"""Reason of the condition DisruptionTarget of a pod that is evicted: Kubernetes' own."""


class Purge(enum.Enum):
    """What becomes of a pod that is to run elsewhere."""

    GRACEFUL = "Graceful"
    """It ends when its replacement is ready."""
    IMMEDIATE = "Immediate"
    """It ends at once."""
    NEVER = "Never"
    """It is not replaced when its cluster is lost."""


@dataclass(frozen=True, slots=True)
class PreservedValue:
    """What the replacement of a pod gets as an annotation: an annotation of the pod, or a value of
    its status."""

    annotation: str
    from_annotation: str = ""
    from_status: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failover:
    """What happens to pods whose cluster is lost."""

    toleration: float = 300.0
    """Seconds after which they are replaced."""
    purge: Purge = Purge.GRACEFUL
    grace: float = DEFAULT_GRACE
    """Seconds for which a replaced pod may run on at most."""
    per_minute: int | None = None
    """So many pods of the policy are evicted in a minute at most."""
    preserve: tuple[PreservedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class EndingPod:
    """A pod that was deleted to run elsewhere. Moments are seconds of the wall clock."""

    uid: str
    since: float
    before: int | None = None
    """The largest number of a pod that was there before; None if it is not known."""
    created: float = 0.0
    serves: bool = True
    """It is ready; one that is not has nothing to run on for."""
    number: int = 0
    """Pods have larger numbers than those that were seen before them; the first may all have 0."""


@dataclass(frozen=True, slots=True)
class LivePod:
    """A pod of the same owner that does not end."""

    uid: str
    created: float
    ready: bool
    number: int = 0


class Replacements(Protocol):
    """Has pods run on until they are replaced."""

    def await_replacement(self, pod: Object, why: str) -> None:
        """Note that the pod is about to be deleted, for that reason; call it right before."""

    def withdraw(self, pod: Object) -> None:
        """Take that back: the pod was not deleted."""


def awaiting(
    ending: Iterable[EndingPod], living: Iterable[LivePod], now: float
) -> tuple[frozenset[str], float | None]:
    """Return which of the ending pods of an owner have no replacement that is ready.

    And in how many seconds that may change though no pod does. As many wait as there are pods that
    have yet to become ready or to be made: of those that serve the ones that were deleted last. A
    pod that does not become ready is no longer waited for after `STARTING`, nor is one that the
    owner has not made after `OWNER`.
    """
    waiting, living = sorted(ending, key=lambda pod: (pod.since, pod.uid)), list(living)
    starting = [pod for pod in living if not pod.ready and now - pod.created < STARTING]
    recent = [pod for pod in waiting if now - pod.since < OWNER]
    unmade = _unmade(recent, living)
    serving = [pod for pod in waiting if pod.serves]
    count = min(len(serving), len(starting) + unmade)
    if not count:
        return frozenset(), None

    changes = [pod.created + STARTING for pod in starting]
    changes += [recent[0].since + OWNER] if unmade else []
    return frozenset(pod.uid for pod in serving[-count:]), max(0.0, min(changes) - now)


def _unmade(ending: Sequence[EndingPod], living: Sequence[LivePod]) -> int:
    """Return how many of these have no replacement yet; they are in the order of their deletion.

    One that replaced another may end itself by now.
    """
    # Those of a former leader come first: nobody knows which pods there were before them.
    former = [pod for pod in ending if pod.before is None]
    moments = [pod.since for pod in former]
    latter = sorted(
        ((pod.before, pod) for pod in ending if pod.before is not None), key=lambda each: each[0]
    )
    numbers = [before for before, _pod in latter]

    def replaced(pod: LivePod | EndingPod) -> int:
        """Return how many of the first it may replace: it was made after they were deleted."""
        later = bisect_left(numbers, pod.number)
        return len(former) + later if later else bisect_right(moments, pod.created)

    # Number of an ending pod -> pods that may replace it, or an earlier one, but no later one.
    last = Counter(replaced(pod) - 1 for pod in living)
    own = (*former, *(pod for _before, pod in latter))
    last.update(min(replaced(pod), number) - 1 for number, pod in enumerate(own))
    unmade = left = 0
    for number in reversed(range(len(ending))):
        left += last[number]
        unmade += not left
        left -= bool(left)

    return unmade
