"""Finds which tokens of its service account a pod mounts: pure.

Admission mounts one in the usual place. A pod may ask for others by projected volumes of its own,
for another audience, life or path. Where a target is given tokens of the source, all of them are
keys of one Secret; the code that creates it and the code that mounts it take the keys from here.

Anything else that a user mounts in the usual place is no token of the pod's account, and is left as
it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from vnode.api import keys
from vnode.api.objects import Object, Objects

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
LIFE: Final = 3600  # seconds; the default of a pod
USUAL: Final = "token"
"""The key of the token in the usual place."""
NAMESPACE: Final = "namespace"
FILES: Final = (USUAL, "ca.crt", NAMESPACE)
"""The files in the usual place."""
_ADMITTED: Final = "kube-api-access-"  # how admission names the volumes that it adds


class WantedToken(NamedTuple):
    """A token that a pod asks for; "" as audience means the API server's own."""

    audience: str
    seconds: int

    @property
    def key(self) -> str:
        """The key of the token in the Secret of the pod."""
        digest = hashlib.sha256(f"{self.seconds} {self.audience}".encode()).hexdigest()
        return f"{USUAL}-{digest[:10]}"


def of(spec: Object) -> dict[str, WantedToken]:
    """Return all tokens that a pod mounts, by key."""
    usual = usual_volumes(spec)
    found = {USUAL: WantedToken("", LIFE)} if usual else {}
    for volume in spec.get("volumes") or ():
        if volume.get("name") not in usual:
            for token in _projected(volume):
                found[token.key] = token

    return found


def usual_volumes(spec: Object) -> set[str]:
    """Return the names of the volumes with the token of the pod's account in the usual place.

    Such a volume is projected, as admission makes it, or the Secret that older clusters have made
    for an account.
    """
    mounted = in_usual_place(spec)
    account = str(spec.get("serviceAccountName") or "default")
    return {
        volume["name"]
        for volume in (spec.get("volumes") or () if mounted else ())
        if volume.get("name") in mounted
        and (_is_projected_token(volume) or _is_secret_of(account, volume))
    }


def is_admitted(volume: Object) -> bool:
    """Tell whether admission added the volume, as it will in a target; else the user did."""
    return "secret" in volume or str(volume.get("name")).startswith(_ADMITTED)


def in_usual_place(spec: Object) -> set[str]:
    """Return the names of the volumes, of whatever kind, that are mounted in the usual place."""
    return {
        mount["name"]
        for field in CONTAINERS
        for container in spec.get(field) or ()
        for mount in mounts(container)
        if mount.get("mountPath") == keys.SERVICE_ACCOUNT_MOUNT
    }


def _is_projected_token(volume: Object) -> bool:
    return any(not token.audience for token in _projected(volume))


def _is_secret_of(account: str, volume: Object) -> bool:
    """Tell it by the name: that of Kubernetes up to 1.23, or of Argo Workflows."""
    name = str((volume.get("secret") or {}).get("secretName") or "")
    pattern = rf"{re.escape(account)}(-token-[a-z0-9]{{5}}|\.service-account-token)"
    return re.fullmatch(pattern, name) is not None


def mounts(container: Object) -> Objects:
    """Return `volumeMounts`."""
    return container.get("volumeMounts") or []


def from_secret(volume: Object, secret: str) -> Object:
    """Take the projected tokens of a volume from that Secret; other volumes are unchanged."""
    if not any(_projected(volume)):
        return volume

    projected = volume["projected"]
    sources = [_from_secret(source, secret) for source in projected["sources"]]
    return {**volume, "projected": {**projected, "sources": sources}}


def _from_secret(source: Object, secret: str) -> Object:
    token = source.get("serviceAccountToken")
    if not token:
        return source

    item = {"key": _wanted(token).key, "path": token.get("path")}
    return {"secret": {"name": secret, "items": [item]}}


def _projected(volume: Object) -> Iterator[WantedToken]:
    for source in (volume.get("projected") or {}).get("sources") or ():
        if token := source.get("serviceAccountToken"):
            yield _wanted(token)


def _wanted(token: Object) -> WantedToken:
    return WantedToken(
        str(token.get("audience") or ""), int(token.get("expirationSeconds") or LIFE)
    )
