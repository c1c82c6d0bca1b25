"""Reads what pods, ResourceClaims and their templates say of devices. Pure.

A pod names claims that are there already, or templates of which its cluster makes claims for it
alone. What it reads may come from another cluster: what has no sense is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_TEMPLATE: Final = "resourceClaimTemplateName"
_BY_FIELD: Final = {
    "resourceClaimName": kinds.RESOURCE_CLAIMS,
    _TEMPLATE: kinds.RESOURCE_CLAIM_TEMPLATES,
}


def of(spec: Object) -> Iterator[tuple[Kind, str]]:
    """Yield the ResourceClaims and ResourceClaimTemplates that a pod names, in its order."""
    listed = spec.get("resourceClaims")
    for entry in listed if isinstance(listed, list) else ():
        for field, kind in _BY_FIELD.items():
            name = entry.get(field) if isinstance(entry, dict) else None
            if name and isinstance(name, str):
                yield kind, name


def named(spec: Object) -> list[str]:
    """Return the ResourceClaims that a pod names, which it may share with others."""
    return [name for kind, name in of(spec) if kind is kinds.RESOURCE_CLAIMS]


def classes(kind: Kind, spec: Object) -> list[str]:
    """Return the DeviceClasses that the spec of a claim or template names, in its order.

    All of them must exist, also those of the alternatives of a request.
    """
    claim = spec if kind is kinds.RESOURCE_CLAIMS else spec.get("spec") or {}
    requests = (claim.get("devices") or {}).get("requests") or ()
    found = (name for request in requests for name in _classes(request))
    return list(dict.fromkeys(filter(None, found)))


def _classes(request: Object) -> Iterator[str]:
    if exactly := request.get("exactly"):
        yield str(exactly.get("deviceClassName") or "")

    for alternative in request.get("firstAvailable") or ():
        yield str(alternative.get("deviceClassName") or "")


def user(claim: Object) -> str:
    """Return who has the devices of a claim in its own cluster, "" if it has none there."""
    status = objects.status(claim)
    for entry in status.get("reservedFor") or ():
        return f"{entry.get('resource')}/{entry.get('name')}"

    return "nobody" if status.get("allocation") else ""


def generated(pod: Object, template: str) -> str:
    """Return the claim that the pod's cluster has made for it of a template; "" if none yet."""
    made = _made(pod)
    for entry in objects.spec(pod).get("resourceClaims") or ():
        if entry.get(_TEMPLATE) == template and entry.get("name") in made:
            return str(made[entry["name"]].get("resourceClaimName") or "")

    return ""


def unmade(pod: Object) -> str:
    """Return a template of which the pod's cluster has yet to make a claim; "" if there is none.

    Of some templates none is needed, which the status of the pod says.
    """
    claims = objects.spec(pod).get("resourceClaims") or ()
    made = _made(pod) if claims else {}
    for entry in claims:
        if entry.get(_TEMPLATE) and entry.get("name") not in made:
            return str(entry[_TEMPLATE])

    return ""


def names(pod: Object) -> dict[str, str]:
    """Return the ResourceClaims of a pod in its own cluster, by what they are for.

    That is a name in the pod, or the extended resources for which the scheduler has made a claim.
    """
    found = {}
    for entry in objects.spec(pod).get("resourceClaims") or ():
        made = _made(pod).get(str(entry.get("name"))) or {}
        if name := entry.get("resourceClaimName") or made.get("resourceClaimName"):
            found[str(entry.get("name"))] = str(name)

    extended = objects.status(pod).get("extendedResourceClaimStatus") or {}
    if name := extended.get("resourceClaimName"):
        mappings = extended.get("requestMappings") or ()
        found[", ".join(sorted({str(m.get("resourceName")) for m in mappings}))] = str(name)

    return found


def devices(claim: Object) -> list[str]:
    """Return the devices that are allocated for a claim, as `DRIVER/POOL/DEVICE`."""
    allocation = objects.status(claim).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return ["/".join(str(r.get(part)) for part in ("driver", "pool", "device")) for r in results]


def _made(pod: Object) -> dict[str, Object]:
    """Return what a pod's status says of its claims, by the names that they have in the pod."""
    entries = objects.status(pod).get("resourceClaimStatuses") or ()
    return {str(entry.get("name")): entry for entry in entries}
