"""The rules of override policies as their objects have them, decoded strictly.

A field that is not known here is an error: it may stand for what a newer version does, and a pod
that lacks it would be another pod than its administrator asked for. What the CRDs check is checked
again, as CRDs may be older or newer than the agent.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from vnode.api.label_selector import LabelSelector
from vnode.api.objects import Object

MOST_RULES: Final = 32
MOST_ENTRIES: Final = 64
"""Entries of one list of a rule."""


class _RuleFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Fields that are not given are absent, or null."""


class ClusterSelection(_RuleFields):
    """The targets that a rule is for, by names and by labels of their virtual nodes."""

    names: list[str] | None = None
    selector: LabelSelector | None = None


class ImageOverride(_RuleFields):
    """Parts of images; "" takes a part away."""

    containers: list[str] | None = None
    registry: str | None = None
    repository: str | None = None
    tag: str | None = None
    digest: str | None = None


class WordsOverride(_RuleFields):
    """Words of a command, or its arguments: others, or some more."""

    containers: list[str] | None = None
    set_: list[str] | None = msgspec.field(name="set", default=None)
    append: list[str] | None = None


class EnvironmentVariable(_RuleFields):
    """A variable, as containers have it."""

    name: str
    value: str | None = None
    value_from: Object | None = None


class EnvironmentOverride(_RuleFields):
    """Variables that are added or replaced, and names of those that are removed."""

    containers: list[str] | None = None
    set_: list[EnvironmentVariable] | None = msgspec.field(name="set", default=None)
    remove: list[str] | None = None


class ResourcesOverride(_RuleFields):
    """Quantities that are added or replaced, by resource."""

    containers: list[str] | None = None
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class AddedToleration(_RuleFields):
    """A toleration, as pods have it."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class PatchOperation(_RuleFields):
    """An operation of RFC 6902."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    value: Any | UnsetType = UNSET
    from_: str | None = msgspec.field(name="from", default=None)


class OverrideRule(_RuleFields):
    """One rule; its fields are applied in this order."""

    clusters: ClusterSelection | None = None
    image: list[ImageOverride] | None = None
    command: list[WordsOverride] | None = None
    args: list[WordsOverride] | None = None
    env: list[EnvironmentOverride] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    resources: list[ResourcesOverride] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[AddedToleration] | None = None
    runtime_class_name: str | None = None
    patches: list[PatchOperation] | None = None


class PolicyHead(_RuleFields):
    """The spec of a policy without its rules, which are decoded one by one."""

    selector: LabelSelector
    rules: list[Any]
    namespaces: list[str] | None = None
    priority: int = 0
