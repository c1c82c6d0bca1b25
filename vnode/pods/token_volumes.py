"""Removes or replaces the service account's token in what travels to a target. Pure.

Admission in the source has mounted it by a volume that only the source's kubelets could fill. If it
is removed, the target mounts one of its own account. If it is replaced, the same mounts show a
Secret that follows the pod (`vnode.following.tokens`), and the containers are told where the
source's API server is. Tokens that the pod projects itself are left to the target, or come from the
same Secret. All else that is mounted in the usual place is the user's, and stays as it is.
"""

from __future__ import annotations

from typing import Final

from vnode.api import service_tokens
from vnode.api.objects import Object
from vnode.api.service_tokens import CONTAINERS, mounts

_ROOT_CA: Final = "kube-root-ca.crt"
_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def drop(spec: Object) -> None:
    """Remove the token; `spec` is the caller's own, what is in it is not."""
    usual = service_tokens.usual_volumes(spec)
    dropped = {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if volume.get("name") in usual and service_tokens.is_admitted(volume)
    }
    if not dropped:
        return

    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_without(container, dropped) for container in spec[field]]

    spec["volumes"] = [v for v in spec.get("volumes") or () if v.get("name") not in dropped]


def replace(spec: Object, secret: str, api: tuple[str, str]) -> None:
    """Take all tokens from that Secret; a pod that mounts none stays as it is."""
    if not service_tokens.of(spec):
        return

    usual = service_tokens.usual_volumes(spec)
    spec["volumes"] = [
        _volume(volume, secret)
        if volume.get("name") in usual
        else service_tokens.from_secret(volume, secret)
        for volume in spec.get("volumes") or ()
    ]
    if not usual:
        return

    spec["automountServiceAccountToken"] = False
    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_with_address(container, api, usual) for container in spec[field]]


def _volume(volume: Object, secret: str) -> Object:
    """Return the volume with the Secret's files, and with all else that the user has there."""
    items = [{"key": file, "path": file} for file in service_tokens.FILES]
    projected = volume.get("projected") or {}
    others = [source for source in projected.get("sources") or () if not _is_replaced(source)]
    if not others:
        return {"name": volume["name"], "secret": {"secretName": secret, "items": items}}

    sources = [{"secret": {"name": secret, "items": items}}, *others]
    return {**volume, "projected": {**projected, "sources": sources}}


def _is_replaced(source: Object) -> bool:
    """Return whether the Secret has it: the token, the API server's CA, or the pod's namespace."""
    files = (source.get("downwardAPI") or {}).get("items") or ()
    return (
        bool(source.get("serviceAccountToken"))
        or (source.get("configMap") or {}).get("name") == _ROOT_CA
        or [file.get("path") for file in files] == [service_tokens.NAMESPACE]
    )


def _without(container: Object, volumes: set[str]) -> Object:
    kept = [mount for mount in mounts(container) if mount.get("name") not in volumes]
    return {**container, "volumeMounts": kept} if kept != mounts(container) else container


def _with_address(container: Object, api: tuple[str, str], volumes: set[str]) -> Object:
    """Add the API server's address to the environment, except for variables that the user set."""
    if not any(mount.get("name") in volumes for mount in mounts(container)):
        return container

    env = container.get("env") or []
    present = {entry.get("name") for entry in env}
    pairs = zip(_VARIABLES, api, strict=True)
    added = [{"name": name, "value": value} for name, value in pairs if name not in present]
    return {**container, "env": [*added, *env]}
