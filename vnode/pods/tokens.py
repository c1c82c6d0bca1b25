"""The service account's token in what travels to a target: taken off, or replaced. Pure.

Admission in the source has mounted it by a volume that only the source's kubelets could fill. Taken
off, the target mounts one of its own account. Replaced, the same mounts show a Secret that follows
the pod (`vnode.following.tokens`), and the containers are told where the source's API server is.
Tokens that the pod projects itself are left to the target, or come from the same Secret.
"""

from __future__ import annotations

from typing import Final

from vnode.api import service_tokens
from vnode.api.objects import Object
from vnode.api.service_tokens import CONTAINERS, is_usual, mounts

_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def drop(spec: Object) -> None:
    """Take the token off; `spec` is the caller's own, what is in it is not."""
    dropped = service_tokens.usual_volumes(spec)
    if not dropped:
        return

    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_without(container) for container in spec[field]]

    spec["volumes"] = [v for v in spec.get("volumes") or () if v.get("name") not in dropped]


def replace(spec: Object, secret: str, api: tuple[str, str]) -> None:
    """Have all tokens come from that Secret; a pod that mounts none stays as it is."""
    if not service_tokens.of(spec):
        return

    usual = service_tokens.usual_volumes(spec)
    spec["volumes"] = [
        _volume(volume["name"], secret)
        if volume.get("name") in usual
        else service_tokens.from_secret(volume, secret)
        for volume in spec.get("volumes") or ()
    ]
    if not usual:
        return

    spec["automountServiceAccountToken"] = False
    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_with_address(container, api) for container in spec[field]]


def _volume(name: str, secret: str) -> Object:
    """What programs look for in the usual place, and no other tokens."""
    items = [{"key": file, "path": file} for file in service_tokens.FILES]
    return {"name": name, "secret": {"secretName": secret, "items": items}}


def _without(container: Object) -> Object:
    kept = [mount for mount in mounts(container) if not is_usual(mount)]
    return {**container, "volumeMounts": kept} if kept != mounts(container) else container


def _with_address(container: Object, api: tuple[str, str]) -> Object:
    """What the pod's user set stays."""
    if not any(is_usual(mount) for mount in mounts(container)):
        return container

    env = container.get("env") or []
    present = {entry.get("name") for entry in env}
    pairs = zip(_VARIABLES, api, strict=True)
    added = [{"name": name, "value": value} for name, value in pairs if name not in present]
    return {**container, "env": [*added, *env]}
