"""Results of pods whose delegates have ended: fed with every event, pure.

Once a target has told on a chaperon how a delegate ended by itself, its pod in the source ends with
that result, whoever cleans up in the target. (That it is not run again, `history` sees.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.faults.snapshot import phase
from vnode.api import keys, objects, permissions
from vnode.api.objects import Object

_FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Results:
    """What was seen of results since the beginning."""

    known: dict[str, str] = field(default_factory=dict)  # UID of a proxy -> phase
    # UIDs of proxies whose chaperon somebody deleted, perhaps before the source saw the result.
    deleted: set[str] = field(default_factory=set)

    def on_chaperon(self, chaperon: Object | None) -> None:
        """Take note of a chaperon that is there, or was changed."""
        annotations, uid = objects.annotations(chaperon or {}), _parent(chaperon or {})
        by_itself = (
            permissions.is_allowed(chaperon or {}) and keys.DELEGATE_DELETED not in annotations
        )
        if chaperon is not None and uid and by_itself and phase(chaperon) in _FINISHED:
            self.known.setdefault(uid, phase(chaperon))

    def not_shown(self, proxies: Iterable[Object]) -> Iterator[str]:
        """Yield what pods show in place of their results, once all is well."""
        for pod in proxies:
            ended = self.known.get(objects.uid(pod), phase(pod))
            if phase(pod) != ended and objects.uid(pod) not in self.deleted:
                yield f"{objects.key(pod)} is {phase(pod)}, its delegate ended as {ended}"


def _parent(chaperon: Object) -> str:
    return objects.labels(chaperon).get(keys.PARENT_UID, "")
