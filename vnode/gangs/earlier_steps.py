"""Counts steps of a job that end before its gang is made, though its PodGroup has them. Pure.

Trainer has a PodGroup count all pods of a TrainJob, and the first of them are initializers, which
fetch a model or data: the nodes of the training are made once these have ended. To wait for all of
them would be to wait for ever, as it is for coscheduling's own scheduler. So initializers start by
themselves, and those that come then are a gang of as many as are left.
"""

from __future__ import annotations

from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.gangs.membership import GangKey

_STEP: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_INITIALIZERS: Final = frozenset({"dataset-initializer", "model-initializer"})
"""As Trainer asks its runtimes to call them; each is one pod."""


def step_of(pod: Object) -> str:
    """Return the name of the step before the gang's own that a pod is of; "" if it is of none."""
    step = objects.labels(pod).get(_STEP, "")
    return step if step in _INITIALIZERS else ""


class EarlierSteps:
    """The pods of such steps, by gang and UID."""

    def __init__(self) -> None:
        self._steps: dict[GangKey, dict[str, str]] = {}

    def put(self, key: GangKey, uid: str, step: str) -> bool:
        """Note the step of a pod; return whether it was not known."""
        steps = self._steps.setdefault(key, {})
        if uid in steps:
            return False

        steps[uid] = step
        return True

    def remove(self, key: GangKey, uid: str) -> None:
        """Forget a pod."""
        steps = self._steps.get(key, {})
        if steps.pop(uid, None) is not None and not steps:
            del self._steps[key]

    def count(self, key: GangKey) -> int:
        """Return how many steps there are: a pod that is made anew is of the same one."""
        return len(set(self._steps.get(key, {}).values()))
