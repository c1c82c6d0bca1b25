"""What an upgrade must not do to what runs: told by two states of one object. Pure.

Labels, annotations and status of an object may change; where a pod runs, what it runs and since
when may not, nor whether a virtual node is Ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import objects
from vnode.api.objects import Object


def of_change(old: Object, new: Object | None) -> Iterator[str]:
    """Yield what was done to an object that should have been left alone."""
    if new is None or objects.uid(new) != objects.uid(old):
        yield "was deleted"
        return

    if objects.is_terminating(new) and not objects.is_terminating(old):
        yield "is being deleted"

    if _without_change_of_nodes(old) != _without_change_of_nodes(new):
        changed = objects.merge_diff(_without_change_of_nodes(old), _without_change_of_nodes(new))
        yield f"has another content: {changed}"

    if (before := _ready(old)) == "True" and (now := _ready(new)) != before:
        yield f"is Ready no more, but {now}"

    if (objects.condition(new, "DisruptionTarget") or {}).get("status") == "True":
        yield f"is disrupted: {objects.condition(new, 'DisruptionTarget')}"

    before, now = starts(old), starts(new)
    if any(now.get(name) != started for name, started in before.items()):
        yield f"was restarted: {before} is {now}"


def _without_change_of_nodes(obj: Object) -> Object:
    return {name: obj[name] for name in ("spec", "data") if name in obj}


def _ready(obj: Object) -> str | None:
    return (objects.condition(obj, "Ready") or {}).get("status")


def starts(pod: Object) -> dict[str, object]:
    """Return when each container that runs was started, and how often."""
    return {
        container["name"]: (container["restartCount"], container["state"]["running"])
        for container in objects.status(pod).get("containerStatuses") or ()
        if "running" in (container.get("state") or {})
    }
