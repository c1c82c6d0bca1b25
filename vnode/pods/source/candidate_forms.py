"""Tells whether a candidate is its pod as it is now: what may be reserved, bound and allowed.

A pod may wait for hours, and be changed meanwhile: its image, its requests, a policy that overrides
it, the Target by which it goes. Each candidate carries a digest of what was sent
(`keys.FORM`), which is compared with what would be sent now. A chaperon is built for that only if
something has changed from which it is built.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.pods import chaperons
from vnode.runtime.target_options import TargetOptions
from vnode.scheduling.queued_pod import concerns_scheduling

_LENGTH: Final = 16  # bytes: two forms of one pod must not have the same digest

_NOT_OF_THE_POD: Final = frozenset(
    {
        *(keys.FORM, keys.IS_ALLOWED, keys.PREEMPTION, keys.PATH, keys.OVERRIDES_SIGNATURE),
        *(keys.GANG_MARK, keys.GANG_REFUSED, keys.SOURCE_DIGEST),
    }
)
"""Annotations of a chaperon that may differ, though its delegate is to be the same."""


@dataclass(frozen=True, slots=True)
class FormInputs:
    """What a chaperon for one Target is built from; `rules` are those of override policies."""

    pod: Object
    options: TargetOptions
    priorities: PriorityMapping
    rules: object

    def same(self, other: FormInputs) -> bool:
        """Tell whether the same chaperon comes of the other."""
        return (
            self.rules == other.rules
            and self.options == other.options
            and self.priorities == other.priorities
            and (self.pod is other.pod or not concerns_scheduling(self.pod, other.pod))
        )


@dataclass(frozen=True, slots=True)
class KnownForm:
    """The digest of the chaperon that comes of these inputs, and its UID if it was made."""

    inputs: FormInputs
    digest: str
    uid: str = ""


def digest(chaperon: Object) -> str:
    """Return the digest of what a chaperon asks for, whatever it lets the candidate do."""
    annotations = {
        k: v for k, v in objects.annotations(chaperon).items() if k not in _NOT_OF_THE_POD
    }
    parts = [chaperons.labels_of_pod(chaperon), annotations, objects.spec(chaperon)]
    text = msgspec.json.encode(parts, order="deterministic")
    return hashlib.blake2b(text, digest_size=_LENGTH).hexdigest()
