"""Tells whether the source of a chaperon has allowed it to run. Pure.

The permission is an annotation, or a message between agents (docs/decisions/0132). A message leaves
no trace of its own on the chaperon, but what came of it does: only a delegate that was allowed is
bound to a node, and the status says that it was. That counts for chaperons of sources that send
messages, and for no others.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object

_BOUND: Final = frozenset(("Running", "Succeeded"))
"""Phases that only a bound pod has. One that never had a node can be Failed."""


def is_allowed(chaperon: Object) -> bool:
    """Tell whether a chaperon's delegate may be bound, or is or was."""
    return keys.IS_ALLOWED in objects.annotations(chaperon) or was_bound(chaperon)


def was_bound(chaperon: Object) -> bool:
    """Tell whether the status shows that a delegate was bound whose source sends messages."""
    if keys.SOURCE_DIGEST not in objects.annotations(chaperon):
        return False

    phase = objects.status(chaperon).get("phase")
    return phase in _BOUND or objects.is_condition_true(chaperon, "PodScheduled")


def is_unwritten(chaperon: Object) -> bool:
    """Tell whether the permission of a bound delegate is not on its chaperon."""
    return was_bound(chaperon) and keys.IS_ALLOWED not in objects.annotations(chaperon)


def patch(chaperon: Object) -> Object:
    """Build the patch that writes the permission, on this chaperon and no namesake."""
    metadata = {"uid": objects.uid(chaperon), "annotations": {keys.IS_ALLOWED: "true"}}
    return {"metadata": metadata}
