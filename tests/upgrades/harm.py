"""What an upgrade must not do to what runs: told by two states of one object. Pure.

Labels, annotations and status of an object may change; where a pod runs, what it runs and since
when may not, nor whether a virtual node is Ready. The selector of a Service may change as long as
it selects the same pods, so EndpointSlices are looked at in its place.
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

    if changed := objects.merge_diff(_content(old), _content(new)):
        yield f"has another content: {changed}"

    if (before := _ready(old)) == "True" and (now := _ready(new)) != before:
        yield f"is Ready no more, but {now}"

    if (objects.condition(new, "DisruptionTarget") or {}).get("status") == "True":
        yield f"is disrupted: {objects.condition(new, 'DisruptionTarget')}"

    first, latest = starts(old), starts(new)
    if any(latest.get(name) != started for name, started in first.items()):
        yield f"was restarted: {first} is {latest}"


def _content(obj: Object) -> Object:
    found: Object = {name: obj[name] for name in ("spec", "data") if name in obj}
    if "clusterIP" in found.get("spec", {}):  # of a Service; lists leave out the kind
        found["spec"] = {k: v for k, v in found["spec"].items() if k != "selector"}

    if "endpoints" in obj:
        ready = (each for each in obj["endpoints"] or () if each["conditions"].get("ready"))
        found["ready"] = sorted(address for each in ready for address in each["addresses"])

    return found


def _ready(obj: Object) -> str | None:
    return (objects.condition(obj, "Ready") or {}).get("status")


def starts(pod: Object) -> dict[str, object]:
    """Return when each container that runs was started, and how often."""
    return {
        container["name"]: (container["restartCount"], container["state"]["running"])
        for container in objects.status(pod).get("containerStatuses") or ()
        if "running" in (container.get("state") or {})
    }
