"""Finds the Targets that a set has made, and those that are in its way. No I/O."""

from __future__ import annotations

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targets import cluster_identity
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import spec
from vnode.targetsets.deciding import MadeTarget


def is_of(obj: Object, target: Object) -> bool:
    """Tell whether a set has made a Target that is not being deleted."""
    return (
        objects.labels(target).get(keys.TARGET_SET) == objects.name(obj)
        and objects.namespace(target) == objects.namespace(obj)
        and objects.controller_uid(target) == objects.uid(obj)
        and not objects.is_terminating(target)
    )


def why_taken(obj: Object, name: str, targets: TargetLister) -> str | None:
    """Return why a set cannot make a Target of a name; None if it can, or has made it by now."""
    other = targets.get(TargetKey(objects.namespace(obj), name))
    if other is None or is_of(obj, other):
        return None

    kind, owner = spec.target_kind(obj).kind.lower(), objects.controller_reference(other)
    by = f" by {owner['kind'].lower()}/{owner['name']}" if owner else " by hand"
    what = "is being deleted" if objects.is_terminating(other) else f"was made{by}"
    return f"{kind}/{objects.key(other)} {what}"


def read(target: Object) -> MadeTarget:
    """Return what is to be decided by of a Target that a set has made."""
    reference = objects.spec(target).get("clusterProfile") or {}
    namespace = objects.namespace(target) or str(reference.get("namespace") or "")
    since = objects.annotations(target).get(keys.PROFILE_GONE)
    connected = cluster_identity.recorded(target) or objects.is_ready(target)
    return MadeTarget(
        objects.name(target),
        objects.join_key(namespace, str(reference.get("name") or "")),
        objects.parse_timestamp(since) if since else None,
        None if connected else objects.created_at(target),
    )
