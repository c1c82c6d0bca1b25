"""Checks fields of an overridden pod that `vnode.api.pod_shape` leaves out. Pure.

An API server has checked the pod that rules begin with, but not what patches make of it. The fields
are those that our code reads after the rules: references to other objects, above all.
"""

from __future__ import annotations

import msgspec

from vnode.api import pod_shape
from vnode.api.objects import Object


class _Part(msgspec.Struct, rename="camel"):
    """Every field may be absent or null, and there may be others."""


class _Reference(_Part):
    name: str | None = None
    secret_name: str | None = None
    claim_name: str | None = None
    optional: bool | None = None


class _Value(_Part):
    config_map_key_ref: _Reference | None = None
    secret_key_ref: _Reference | None = None


class _ReferringVariable(_Part):
    value_from: _Value | None = None


class _VariableSource(_Part):
    config_map_ref: _Reference | None = None
    secret_ref: _Reference | None = None


class _ReferringContainer(_Part):
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_ReferringVariable] | None = None
    env_from: list[_VariableSource] | None = None


class _Driver(_Part):
    secret_ref: _Reference | None = None
    node_publish_secret_ref: _Reference | None = None


class _ReferringVolume(_Part):
    config_map: _Reference | None = None
    azure_file: _Reference | None = None
    persistent_volume_claim: _Reference | None = None


class _ReferringSpec(_Part):
    containers: list[_ReferringContainer] | None = None
    init_containers: list[_ReferringContainer] | None = None
    volumes: list[_ReferringVolume] | None = None
    image_pull_secrets: list[_Reference] | None = None
    resources: Object | None = None
    runtime_class_name: str | None = None
    active_deadline_seconds: int | None = None


class _ReferringPod(_Part):
    spec: _ReferringSpec


def problem(pod: Object) -> str | None:
    """Return which field cannot be read, and why; None if all can. `pod_shape` has passed it."""
    if (why := pod_shape.problem_of(pod, _ReferringPod)) is not None:
        return why

    for volume in pod["spec"].get("volumes") or ():
        for driver in volume.values():
            if isinstance(driver, dict) and (why := pod_shape.problem_of(driver, _Driver)):
                return f"spec.volumes: {why}"

    return None
