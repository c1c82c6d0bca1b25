"""Says by an Event that the source lacks a ConfigMap or Secret to which a pod refers. Pure.

It is no error: the object follows once it is created, and the target may have one of its own. The
reasons are those of virtual-kubelet and the kubelet, for which people and programs look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from vnode.api import kinds
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.references import Ref, ReferenceRequirement

_NAMES: Final = {kinds.CONFIG_MAPS: "configmap", kinds.SECRETS: "secret"}
_REASONS: Final = {
    ReferenceRequirement.MANDATORY: "Mandatory{kind}NotFound",
    ReferenceRequirement.OPTIONAL: "Optional{kind}NotFound",
    ReferenceRequirement.IMAGE_PULL: "FailedToRetrieveImagePullSecret",
}
_CURES: Final = {
    ReferenceRequirement.MANDATORY: "create it: the pod starts once it has followed there",
    ReferenceRequirement.OPTIONAL: "the pod starts without it; once it is created, it follows",
    ReferenceRequirement.IMAGE_PULL: (
        "images that need it cannot be pulled; create it, and it follows"
    ),
}


class MissingReference(NamedTuple):
    """Reason and message of one Event."""

    reason: str
    message: str


def missing_references(pod: Object, is_absent: Callable[[Ref], bool]) -> Iterator[MissingReference]:
    """Yield what a whole pod refers to and its own cluster lacks, in a stable order."""
    optionalities = references.optionalities(pod)
    for ref in references.of(pod):
        if ref.kind in _NAMES and is_absent(ref):
            optionality = optionalities[ref]
            yield MissingReference(
                _REASONS[optionality].format(kind=ref.kind.kind),
                f'{_NAMES[ref.kind]} "{ref.name}" not found in namespace {ref.namespace} of this '
                f"cluster, so that none follows to the pod's target: {_CURES[optionality]}",
            )
