"""Says why an object does not follow to a target, and what cures it, for the pods that need it."""

from __future__ import annotations

from vnode.api import cures
from vnode.api.errors import Denied, Invalid, NotFound, NotGranted, Unreachable, VnodeError
from vnode.following.family import Family
from vnode.following.reference_index import Key
from vnode.following.remote_copies import TargetCopies


def find(key: Key, remote: TargetCopies | None, family: Family) -> VnodeError | None:
    """Return why nothing can be done about an object in a target now; None if something can."""
    if remote is None:
        return Unreachable("the target is not connected")

    if not remote.link.health.healthy:
        return Unreachable(remote.link.health.message)

    informer = remote.informers.get(key.ref.kind)
    failure = informer.failure(key.ref.namespace) if informer else None
    if isinstance(failure, Denied):
        return NotGranted(explain(failure, key, remote, family))

    if isinstance(failure, NotFound):
        kind = key.ref.kind
        return NotGranted(
            f"the target does not serve {kind.resource} of version {kind.version}: its version "
            "of Kubernetes lacks them, or has them disabled; enable them there, or keep the "
            "pod to other targets"
        )

    return failure


def explain(error: VnodeError, key: Key, remote: TargetCopies, family: Family) -> str:
    """Return what is to be told of a target's refusal of an object."""
    target = remote.link.target
    if isinstance(error, Invalid):
        return f"{key.ref} cannot follow to target {target.name}: {error.message}"

    if not isinstance(error, Denied):
        return error.message if isinstance(error, NotFound) else str(error)

    cure = family.denial_cure
    if family.role == Family.role and not target.namespace:
        cure = f"{cures.grant(key.ref.namespace)}; else {cure}"

    return f"{key.ref} may not follow to target {target.name}: {error.message}; {cure}"
