"""Decides which pods of a node a drain evicts, by kubectl's rules. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects

_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The flags that allow more than the eviction of pods with a controller and without data."""

    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class PodsToEvict:
    """The pods to evict; none may be evicted if there are `errors`."""

    evicted: Objects
    warnings: list[str]
    errors: list[str]


def select(pods: Iterable[Object], rules: DrainRules) -> PodsToEvict:
    """Sort the pods of a node by what a drain does with them."""
    evicted: Objects = []
    unmanaged: list[str] = []
    daemons: list[str] = []
    local: list[str] = []
    for pod in pods:
        key, owner = objects.key(pod), (objects.controller_reference(pod) or {}).get("kind")
        if _MIRROR in objects.annotations(pod):
            continue

        if owner == "DaemonSet":
            daemons.append(key)
            continue

        is_finished = objects.is_finished(pod)
        if owner is None and not is_finished:
            unmanaged.append(key)

        if _has_local_data(pod) and not is_finished:
            local.append(key)

        evicted.append(pod)

    warnings, errors = [], []
    for keys, allowed, flag, what in (
        (
            unmanaged,
            rules.force,
            "--force",
            "Pods that declare no controller (they will not be recreated)",
        ),
        (daemons, rules.ignore_daemonsets, "--ignore-daemonsets", "DaemonSet-managed Pods"),
        (
            local,
            rules.delete_emptydir_data,
            "--delete-emptydir-data",
            "Pods with local storage (emptyDir, lost with the pod)",
        ),
    ):
        if keys and allowed:
            verb = "ignoring" if keys is daemons else "deleting"
            warnings.append(f"{verb} {what}: {', '.join(keys)}")
        elif keys:
            errors.append(f"cannot delete {what}: use {flag} to override: {', '.join(keys)}")

    return PodsToEvict(evicted, warnings, errors)


def _has_local_data(pod: Object) -> bool:
    return any("emptyDir" in volume for volume in objects.spec(pod).get("volumes") or ())
