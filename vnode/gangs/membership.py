"""Reads which gang a pod is of: by annotations of ours, or since it names a PodGroup. Pure.

Three APIs have PodGroups, and operators know one of them each. So a pod may name its group in four
ways; one that names different groups belongs to none of them for sure, and is told so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

from vnode.api import keys, objects
from vnode.api.names import NAME_LIMIT
from vnode.api.objects import Object

_MOST: Final = 100_000  # pods of a gang
_ANNOTATIONS: Final = (keys.GANG, *keys.VOLCANO_GROUPS)


class GroupApi(enum.Enum):
    """Where the object is that says how many pods of a gang start together."""

    ANNOTATION = keys.GANG  # no object: the pods say so
    COSCHEDULING = "scheduling.x-k8s.io"
    NATIVE = "scheduling.k8s.io"
    VOLCANO = "scheduling.volcano.sh"


class GangKey(NamedTuple):
    """The name of a gang; in a namespace, names of different APIs do not meet."""

    api: GroupApi
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the gang's name for messages."""
        if self.api is GroupApi.ANNOTATION:
            return self.name

        return f"{self.name} (PodGroup of {self.api.value})"


class Membership(NamedTuple):
    """What a pod says of its gang."""

    key: GangKey
    minimum: int | None = None
    """How many start together, if the pod says so itself."""
    problem: str = ""
    """Why the pod cannot start as it is, with the cure."""


def of(pod: Object) -> Membership | None:
    """Return the membership of a pod; None if it is in no gang, as almost all are."""
    annotations = objects.annotations(pod)
    if (
        keys.POD_GROUP not in objects.labels(pod)
        and "schedulingGroup" not in objects.spec(pod)
        and not any(key in annotations for key in _ANNOTATIONS)
    ):
        return None

    found = list(_named(pod))
    if not found:
        return None

    place, first = found[0]
    if (longest := max(len(each.name) for _, each in found)) > NAME_LIMIT:
        problem = f"the name of the pod's gang has {longest} characters: use {NAME_LIMIT} at most"
        return Membership(first._replace(name=first.name[:NAME_LIMIT]), problem=problem)

    others = [f"{each.name} by {where}" for where, each in found[1:] if each.name != first.name]
    if others:
        problem = (
            f"the pod names gang {first.name} by {place}, and {', '.join(others)}: remove all "
            "but one"
        )
        return Membership(first, problem=problem)

    if first.api is GroupApi.ANNOTATION:
        return _by_annotation(first, annotations.get(keys.GANG_MINIMUM))

    return Membership(first)


def _named(pod: Object) -> Iterator[tuple[str, GangKey]]:
    """Yield the gangs that a pod names, each with where it does so."""
    annotations, namespace = objects.annotations(pod), objects.namespace(pod)
    if name := annotations.get(keys.GANG):
        yield f"annotation {keys.GANG}", GangKey(GroupApi.ANNOTATION, namespace, name)

    if name := objects.labels(pod).get(keys.POD_GROUP):
        yield f"label {keys.POD_GROUP}", GangKey(GroupApi.COSCHEDULING, namespace, name)

    group = objects.spec(pod).get("schedulingGroup") or {}
    if name := group.get("podGroupName"):
        yield "spec.schedulingGroup", GangKey(GroupApi.NATIVE, namespace, str(name))

    for key in keys.VOLCANO_GROUPS:
        if name := annotations.get(key):
            yield f"annotation {key}", GangKey(GroupApi.VOLCANO, namespace, name)


def _by_annotation(key: GangKey, text: str | None) -> Membership:
    if text is None:
        return Membership(key)

    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= _MOST:
        problem = (
            f"annotation {keys.GANG_MINIMUM} is {text[:40]!r}: write how many pods of the gang "
            f"start together, from 1 to {_MOST}"
        )
        return Membership(key, problem=problem)

    return Membership(key, number)
