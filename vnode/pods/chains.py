"""Decides whether a delegate is sent on to a third cluster, and tells its source if it cannot be.

A delegate that its user lets travel (`vnode.dev/forward`) becomes a proxy of this cluster, if there
is a target that it has not come through. From then on it is a pod like others, but for one thing:
it is bound only when its own source allows it, so that a reservation goes through all clusters of a
chain, and only one of all candidates is ever bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from vnode.api import keys, objects, route, scheduled_condition
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.runtime.links import Links


def goes_on(
    chaperon: Object, here: str, targets: Callable[[str], Collection[TargetKey]], links: Links
) -> bool:
    """Return whether a chaperon's delegate is to be sent on from this cluster, of the UID `here`.

    Else it stays, and runs here. A target counts even if it is out of reach at the moment, or if
    its cluster is not known yet. `targets` returns those for pods of a namespace.
    """
    if keys.FORWARD not in objects.annotations(chaperon):
        return False

    try:
        route.extend(chaperon, here)
        behind = route.path_of(chaperon)
    except ConfigError:
        return False

    nodes = (key.node_name for key in targets(objects.namespace(chaperon)))
    uids = (link.cluster_uid if (link := links.get(node)) else None for node in nodes)
    return any(uid is None or (uid and uid not in behind) for uid in uids)


def not_sent_on(pod: Object, why: str) -> Object:
    """Build the strategic merge patch of status that tells a source why its delegate stays here.

    The condition is one that sources understand as a rejection; the reason is what kubectl shows.
    """
    status = {
        "reason": "NotSentOn",
        "message": why,
        "conditions": [scheduled_condition.rejected(why)],
    }
    return objects.status_patch(pod, status)
