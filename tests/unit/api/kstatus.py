"""The rules by which kstatus, and so Flux and kpt, reads the status of an object.

They are those of sigs.k8s.io/cli-utils/pkg/kstatus for kinds that it does not know, in our words.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object


def status(obj: Object) -> str:
    """Return what kstatus makes of an object: Terminating, InProgress, Failed or Current."""
    metadata, found = objects.metadata(obj), objects.status(obj)
    if "deletionTimestamp" in metadata:
        return "Terminating"

    observed = found.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation"):
        return "InProgress"

    if objects.is_condition_true(obj, "Reconciling"):
        return "InProgress"

    if objects.is_condition_true(obj, "Stalled"):
        return "Failed"

    ready = objects.condition(obj, "Ready")
    return "Current" if ready is None or ready.get("status") == "True" else "InProgress"
