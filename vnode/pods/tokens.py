"""The service account's token in what travels to a target: taken off, or replaced. Pure.

Admission in the source has mounted it by a volume that only the source's kubelets could fill. Taken
off, the target mounts one of its own account. Replaced, the same mounts show a Secret that follows
the pod (`vnode.following.tokens`), and the containers are told where the source's API server is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import keys
from vnode.api.objects import Object, Objects

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def drop(spec: Object) -> None:
    """Take the token off; `spec` is the caller's own, what is in it is not."""
    dropped = set(_volumes(spec))
    if not dropped:
        return

    for field in _CONTAINERS:
        if field in spec:
            spec[field] = [_without(container) for container in spec[field]]

    spec["volumes"] = [v for v in spec.get("volumes") or () if v.get("name") not in dropped]


def replace(spec: Object, secret: str, api: tuple[str, str]) -> None:
    """Have the token's mounts show that Secret; a pod without such mounts stays as it is."""
    found = set(_volumes(spec))
    if not found:
        return

    spec["automountServiceAccountToken"] = False
    spec["volumes"] = [
        {"name": volume["name"], "secret": {"secretName": secret}}
        if volume.get("name") in found
        else volume
        for volume in spec.get("volumes") or ()
    ]
    for field in _CONTAINERS:
        if field in spec:
            spec[field] = [_with_address(container, api) for container in spec[field]]


def _volumes(spec: Object) -> Iterator[str]:
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from (mount["name"] for mount in _mounts(container) if _is_token(mount))


def _mounts(container: Object) -> Objects:
    return container.get("volumeMounts") or []


def _is_token(mount: Object) -> bool:
    return mount.get("mountPath") == keys.SERVICE_ACCOUNT_MOUNT


def _without(container: Object) -> Object:
    kept = [mount for mount in _mounts(container) if not _is_token(mount)]
    return {**container, "volumeMounts": kept} if kept != _mounts(container) else container


def _with_address(container: Object, api: tuple[str, str]) -> Object:
    """What the pod's user set stays."""
    if not any(_is_token(mount) for mount in _mounts(container)):
        return container

    env = container.get("env") or []
    present = {entry.get("name") for entry in env}
    pairs = zip(_VARIABLES, api, strict=True)
    added = [{"name": name, "value": value} for name, value in pairs if name not in present]
    return {**container, "env": [*added, *env]}
