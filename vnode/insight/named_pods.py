"""Finds the pods that a user names, one by one or by what owns them. Pure.

Names are written as kubectl takes them: `web-1 web-2`, `pod web-1`, `deployment/web job/import`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.planning.workload_key import workload_of

POD: Final = "pod"
_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("pod", "pods", "po"), POD),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "replicaset"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "statefulset"),
    **dict.fromkeys(("job", "jobs"), "job"),
}


@dataclass(frozen=True, slots=True)
class Named:
    """A pod, or what owns pods: a kind in small letters, and a name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def parse(arguments: Sequence[str]) -> list[Named]:
    """Return what is named; ConfigError if that makes no sense."""
    if any("/" in each for each in arguments):
        return [_pair(each) for each in arguments]

    kind = _ALIASES.get(arguments[0]) if len(arguments) > 1 else None
    return [Named(kind or POD, name) for name in arguments[1 if kind else 0 :]]


def _pair(argument: str) -> Named:
    kind, _slash, name = argument.partition("/")
    if not kind or not name or "/" in name:
        raise ConfigError(
            f"{argument!r} is no KIND/NAME: write pod/web-1, deployment/web, or names of pods"
        )

    return Named(_ALIASES.get(kind.lower(), kind.lower()), name)


def of_owner(pods: Iterable[Object], owner: Named) -> Objects:
    """Return the pods of an owner: their controller, or the maker of their ReplicaSet."""
    return [pod for pod in pods if owner in _owners(pod)]


def _owners(pod: Object) -> set[Named]:
    workload, _slash, rest = workload_of(pod).partition("/")
    found = {Named(workload.partition(".")[0], rest.partition("/")[2])}
    if (controller := objects.controller_reference(pod)) is not None:
        found.add(Named(str(controller.get("kind") or "").lower(), str(controller.get("name"))))

    return found
