"""Checks that a saved manifest, or a chaperon, has the form that the API gives a pod.

The webhook saves the pod as the API server has checked it. But users can write the annotation that
it is saved in, too, and that text nobody has checked. Nor does an API server check the spec of a
chaperon. Only the fields that our code reads are checked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vnode.api.objects import Object


class _Camel(msgspec.Struct, rename="camel"):
    """Every field may be absent or null, and there may be others."""


class _Metadata(_Camel):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _FieldRef(_Camel):
    field_path: str | None = None


class _ValueFrom(_Camel):
    field_ref: _FieldRef | None = None


class _Variable(_Camel):
    name: str
    value_from: _ValueFrom | None = None


class _Mount(_Camel):
    name: str
    mount_path: str


class _Container(_Camel):
    name: str
    image: str | None = None
    resources: Object | None = None
    env: list[_Variable] | None = None
    volume_mounts: list[_Mount] | None = None


class _Item(_Camel):
    field_ref: _FieldRef | None = None


class _DownwardApi(_Camel):
    items: list[_Item] | None = None


class _Token(_Camel):
    audience: str | None = None
    expiration_seconds: int | None = None
    path: str | None = None


class _File(_Camel):
    key: str
    path: str


class _FileReference(_Camel):
    name: str | None = None
    items: list[_File] | None = None
    optional: bool | None = None


class _ProjectedSource(_Camel):
    service_account_token: _Token | None = None
    config_map: _FileReference | None = None
    secret: _FileReference | None = None
    downward_api: _DownwardApi | None = msgspec.field(default=None, name="downwardAPI")


class _Projected(_Camel):
    sources: list[_ProjectedSource] | None = None


class _Secret(_Camel):
    secret_name: str | None = None
    items: list[_File] | None = None
    optional: bool | None = None


class _Volume(_Camel):
    name: str
    secret: _Secret | None = None
    projected: _Projected | None = None
    downward_api: _DownwardApi | None = msgspec.field(default=None, name="downwardAPI")


class _Toleration(_Camel):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _Requirement(_Camel):
    key: str
    operator: str
    values: list[str] | None = None


class _LabelSelector(_Camel):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Requirement] | None = None


class _NodeTerm(_Camel):
    match_expressions: list[_Requirement] | None = None
    match_fields: list[_Requirement] | None = None


class _NodeSelector(_Camel):
    node_selector_terms: list[_NodeTerm] | None = None


class _Preference(_Camel):
    preference: _NodeTerm | None = None


class _NodeAffinity(_Camel):
    required: _NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[_Preference] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _Topology(_Camel):
    topology_key: str | None = None
    label_selector: _LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _WeighedTopology(_Camel):
    pod_affinity_term: _Topology | None = None


class _PodAffinity(_Camel):
    required: list[_Topology] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[_WeighedTopology] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _Affinity(_Camel):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Spec(_Camel):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    volumes: list[_Volume] | None = None
    service_account_name: str | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[_Toleration] | None = None
    affinity: _Affinity | None = None
    topology_spread_constraints: list[_Topology] | None = None


class _Pod(_Camel):
    spec: _Spec
    metadata: _Metadata | None = None


def is_pod(manifest: Any) -> bool:
    """Tell whether the value can be read as a pod that its user wrote."""
    return problem(manifest) is None


def problem(manifest: Any) -> str | None:
    """Return which field cannot be read as that of a pod, and why; None if all can."""
    return problem_of(manifest, _Pod)


def problem_of(value: Any, form: type) -> str | None:
    """Return which field does not have the form that a msgspec Struct gives it; None if all do."""
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `")
        field = where.rstrip("`").removeprefix("$").removeprefix(".")
        return f"{field}: {what}" if field else what
    except RecursionError:
        return "it is nested too deeply"

    return None
