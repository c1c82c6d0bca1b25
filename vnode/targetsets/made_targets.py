"""Finds the Targets that a set has made, and those that are in its way. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targets import cluster_identity
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import spec
from vnode.targetsets.deciding import MadeTarget


def of_set(obj: Object, targets: TargetLister) -> dict[str, Object]:
    """Return the Targets that a set has made, by name, but for those that are being deleted."""
    of_cluster = spec.target_kind(obj) == kinds.CLUSTER_TARGETS
    informer = targets.informers[1 if of_cluster else 0]
    return {
        objects.name(target): target
        for target in informer.store.values()
        if objects.labels(target).get(keys.TARGET_SET) == objects.name(obj)
        and objects.namespace(target) == objects.namespace(obj)
        and objects.controller_uid(target) == objects.uid(obj)
        and not objects.is_terminating(target)
    }


def taken(obj: Object, names: Iterable[str], targets: TargetLister) -> dict[str, str]:
    """Return why a set cannot have Targets of these names, for each that exists."""
    found = {}
    for name in names:
        other = targets.get(TargetKey(objects.namespace(obj), name))
        if other is None:
            continue

        kind, owner = spec.target_kind(obj).kind.lower(), objects.controller_reference(other)
        by = f" by {owner['kind'].lower()}/{owner['name']}" if owner else " by hand"
        what = "is being deleted" if objects.is_terminating(other) else f"was made{by}"
        found[name] = f"{kind}/{objects.key(other)} {what}"

    return found


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
