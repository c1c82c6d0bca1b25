"""Tells delegates that a kubelet rejected, and when they are made anew. Pure.

A kubelet admits each pod that is bound to its node, and fails those for which it has no room
(`OutOfcpu`), or which are not for the node as it is now (`NodeAffinity`, `UnexpectedAdmissionError`
of a device). That happens where two schedulers give the same room away. Such a delegate has started
nothing: it is deleted and made anew, before its source has heard of an end. The chaperon notes
which delegate that is and how many there were, so that its absence is not taken for a loss, and the
next one comes after a back-off.

A kubelet that restarts admits its pods again. One that it rejects then has run, though its status
is the same: no containers. So the chaperon must not have reported that the pod was started, and the
status must have been written when the kubelet first looked at the pod.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from vnode.api import documents, keys, objects
from vnode.api.objects import Object

MOST: Final = 8
"""How often a pod is made anew that is rejected for something else than room."""

_FOR_GOOD: Final = frozenset(
    {
        *("AppArmor", "InitContainerRestartPolicyForbidden", "PodFeatureUnsupported"),
        *("PodLevelResourcesNotSupported", "PodOSNotSupported"),
        *("PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported"),
        "SysctlForbidden",
    }
)
"""Reasons that are about what the pod asks for: it fails, as it would without vnode."""

LONGEST: Final = timedelta(minutes=5)
"""Until the next delegate is made; the first one is made after a second, then twice as long."""

_WORDS: Final = "Pod was rejected: "  # of a kubelet
_NO_ROOM: Final = "OutOf"  # how its reasons begin if a resource is exhausted
_KUBELET: Final = "kubelet"  # its name as a writer of fields
_AT_ONCE: Final = timedelta(seconds=10)  # from looking at a pod to the end of that write

_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Rejections(msgspec.Struct, frozen=True):
    """How many delegates of a chaperon were rejected, and the last one, until the next is there."""

    count: _Count = 0
    at: Annotated[int, msgspec.Meta(ge=0, lt=2**40)] = 0
    """When the last one was deleted, in seconds since 1970."""
    uid: str = ""
    """Of the last one; "" once the next is there."""

    def next(self, pod: Object, now: datetime) -> Rejections:
        """Return the rejections with one more."""
        return Rejections(self.count + 1, int(now.timestamp()), objects.uid(pod))

    def left(self, now: datetime) -> timedelta:
        """Return how long it is until the next delegate is made."""
        pause = min(2.0 ** min(self.count - 1, 16), LONGEST.total_seconds())
        return timedelta(seconds=max(0.0, self.at + pause - now.timestamp()))

    def is_enough(self, pod: Object) -> bool:
        """Tell whether a delegate is to fail as its kubelet has it: others would fail, too."""
        reason = str(objects.status(pod).get("reason", ""))
        is_tried = self.count >= MOST and not reason.startswith(_NO_ROOM)
        return is_tried or reason in _FOR_GOOD

    def encode(self) -> str:
        """Return the text for an annotation."""
        return msgspec.json.encode(self).decode()


_NONE: Final = Rejections()


def of(chaperon: Object) -> Rejections:
    """Return what a chaperon has noted of its rejected delegates."""
    noted = objects.annotations(chaperon).get(keys.REJECTED)
    return documents.read_note(noted, Rejections) or _NONE


def pending(chaperon: Object) -> Rejections | None:
    """Return the rejections of a chaperon whose next delegate is to be made; mostly None."""
    known = of(chaperon)
    return known if known.uid and not _was_started(objects.status(chaperon)) else None


def with_delegate(chaperon: Object, pod: Object) -> str | None:
    """Return what a chaperon is to note once it has that delegate; None if that is nothing new."""
    known = of(chaperon)
    if not known.uid or known.uid == objects.uid(pod):
        return None

    return Rejections(known.count, known.at).encode()


def may_be(chaperon: Object, pod: Object) -> bool:
    """Tell whether a delegate was rejected, and has started nothing as far as is known."""
    status = objects.status(pod)
    by_kubelet = status.get("phase") == "Failed" and objects.node_name(pod) != ""
    said = str(status.get("message", "")).startswith(_WORDS)
    ran = status.get("containerStatuses") or _was_started(objects.status(chaperon))
    return by_kubelet and said and not ran


def _was_started(status: Object) -> bool:
    return bool(status.get("startTime") or status.get("containerStatuses"))


def is_first_look(pod: Object) -> bool:
    """Tell whether the kubelet rejected a pod, with its managed fields, when it first saw it."""
    started = objects.parse_timestamp(str(objects.status(pod).get("startTime")))
    written = [
        objects.parse_timestamp(str(entry.get("time")))
        for entry in objects.metadata(pod).get("managedFields") or ()
        if entry.get("manager") == _KUBELET and entry.get("subresource") == "status"
    ]
    if started is None or len(written) != 1 or written[0] is None:
        return False

    return abs(written[0] - started) <= _AT_ONCE


def reason(pod: Object) -> str:
    """Return why the delegate of a chaperon is made anew, for users of its source."""
    status = objects.status(pod)
    text = str(status.get("message", "")).removeprefix(_WORDS)
    why, node = status.get("reason", ""), objects.node_name(pod)
    return f"the kubelet of node {node} rejected the pod ({why}): {text} It is made anew."
