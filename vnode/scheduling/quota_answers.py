"""Remembers what a target has answered about pods that its quotas or limits seem to forbid.

A quota counts what admission in the target has made of a pod: its policies and webhooks may fill in
requests, or lower them. So what is computed from the pod in the source is a guess, and the target
is asked by a candidate. But pods of one kind, as all of a ReplicaSet are, get one answer: while it
is not there, or it is no, the others wait. The pod that was refused keeps its candidate, which the
target tries again by itself, so that a policy that comes later is noticed; if it goes, another may
ask after `_MEMORY` seconds. A target that has taken a pod against the guess is asked for more and
more at once, until it refuses one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from vnode.api import keys, objects, owners
from vnode.api.objects import Object
from vnode.api.resource_quotas import QuotaUsage

_MEMORY: Final = 60.0  # seconds for which a refusal counts whose candidate is gone
_GROWTH: Final = 8  # since those that wait are in back-off in between
_MOST_AT_ONCE: Final = 256  # pods of one kind that are asked for at once, against the guess
_MOST_KINDS: Final = 1000  # of one namespace of one target that are remembered

PodKind = tuple[str, ...]
"""What pods have in common of which a target would say the same."""


def kind_of(usage: QuotaUsage) -> PodKind:
    """Return the kind of a pod, by what policies and quotas go by.

    Pods of one owner differ in their numbers and names only, unless it makes several kinds.
    """
    pod, spec = usage.pod, usage.spec
    owner, labels = owners.owner_key(pod) or "", objects.labels(pod)
    if owner:
        own = (objects.name(pod), objects.metadata(pod).get("generateName"))
        labels = {k: v for k, v in labels.items() if v not in own and not v.isdecimal()}

    annotations = objects.annotations(pod) if not owner else {}
    told = {k: v for k, v in annotations.items() if keys.is_foreign(k)}
    images = [
        (container.get("name"), container.get("image"))
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
    ]
    seen = [labels, told, images, usage.amounts, usage.violations, spec.get("serviceAccountName")]
    text = msgspec.json.encode([*seen, spec.get("priorityClassName")], order="deterministic")
    return owner, hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class QuotaRefusal:
    """What a target has said of one pod; `surprising` if that pod, or one like it, seemed to fit,
    or was taken though it seemed not to."""

    uid: str
    pod: str
    message: str
    surprising: bool
    until: float | None = None  # monotonic; None while the candidate is there

    def counts(self, now: float) -> bool:
        """Tell whether it still speaks for other pods of the kind."""
        return self.until is None or now < self.until


class QuotaAnswers:
    """The answers of one target about pods of one namespace. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.refusals: dict[PodKind, QuotaRefusal] = {}
        self._at_once: dict[PodKind, int] = {}  # kinds of which a pod was taken against the guess

    def refusal(self, kind: PodKind, now: float) -> QuotaRefusal | None:
        """Return the refusal that counts for pods of a kind."""
        found = self.refusals.get(kind)
        return found if found is not None and found.counts(now) else None

    def is_about(self, uid: str) -> bool:
        """Tell whether a refusal is that of a pod."""
        return any(found.uid == uid for found in self.refusals.values())

    def at_once(self, kind: PodKind) -> int:
        """Return how many pods of a kind may be asked for at once, against the guess."""
        return self._at_once.get(kind, 1)

    def take(self, kind: PodKind, uid: str, *, doubtful: bool) -> bool:
        """Note that a pod was taken; return whether others may be asked for because of that."""
        known = self.refusals.get(kind)
        lifted = known is not None and (doubtful or known.uid == uid)
        if lifted:
            del self.refusals[kind]

        if doubtful:
            self._limit(self._at_once)
            self._at_once[kind] = min(self.at_once(kind) * _GROWTH, _MOST_AT_ONCE)

        return lifted or doubtful

    def refuse(self, kind: PodKind, pod: Object, message: str, *, doubtful: bool) -> bool:
        """Note that a pod was refused; return whether that is news."""
        known, uid = self.refusals.get(kind), objects.uid(pod)
        if known is not None and known.until is None and known.uid != uid:
            return False

        surprising = not doubtful or kind in self._at_once
        if known is not None and known.uid == uid:
            surprising |= known.surprising

        found = QuotaRefusal(uid, objects.key(pod), message, surprising)
        if found == known:
            return False

        if kind in self._at_once:
            self._at_once[kind] = 1

        self._limit(self.refusals)
        self.refusals[kind] = found
        return True

    def leave(self, uid: str, now: float) -> bool:
        """Note that the candidate of a pod is gone; return whether it spoke for others."""
        spoke = False
        for kind, found in self.refusals.items():
            if found.uid == uid and found.until is None:
                self.refusals[kind] = replace(found, until=now + _MEMORY)
                spoke = True

        return spoke

    def forget_surprising(self) -> None:
        """Forget refusals that no guess explains: there is more room than there was."""
        self.refusals = {kind: r for kind, r in self.refusals.items() if not r.surprising}

    def forget(self) -> None:
        """Forget all: the quotas or limits are others, or what is sent is."""
        self.refusals.clear()
        self._at_once.clear()

    def _limit(self, listed: dict[PodKind, QuotaRefusal] | dict[PodKind, int]) -> None:
        while len(listed) >= _MOST_KINDS:
            del listed[next(iter(listed))]
