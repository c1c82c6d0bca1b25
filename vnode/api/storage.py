"""Gives claims of volumes, and ephemeral volumes of pods, storage classes of a target. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vnode.api import cluster_bound, keys, objects
from vnode.api.objects import Object

_CLASS: Final = "storageClassName"
_EPHEMERAL: Final = "ephemeral volume of a pod"


def mapped_class(spec: Object, classes: Mapping[str, str]) -> str:
    """Return the class of a claim in a target, "" for its default one.

    A class that is not mapped keeps its name.
    """
    own = str(spec.get(_CLASS) or "")
    return classes.get(own, own)


def translate(spec: Object, classes: Mapping[str, str]) -> None:
    """Put into the spec of a pod, the caller's own, what its ephemeral volumes are in a target."""
    volumes = spec.get("volumes")
    if volumes and any(volume.get("ephemeral") for volume in volumes):
        spec["volumes"] = [_volume(volume, classes) for volume in volumes]


def _volume(volume: Object, classes: Mapping[str, str]) -> Object:
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if not template:
        return volume

    stays = cluster_bound.staying_fields(_EPHEMERAL)
    claim = {k: v for k, v in objects.spec(template).items() if k not in stays and k != _CLASS}
    if name := mapped_class(objects.spec(template), classes):
        claim[_CLASS] = name

    metadata = objects.metadata(template)
    if annotations := objects.annotations(template):
        kept = {k: v for k, v in annotations.items() if cluster_bound.travels(k)}
        metadata = {
            **metadata,
            "annotations": {k: v for k, v in kept.items() if keys.is_foreign(k)},
        }

    made = {**template, "spec": claim}
    if metadata:
        made["metadata"] = metadata

    return {**volume, "ephemeral": {**volume["ephemeral"], "volumeClaimTemplate": made}}
