"""Finds the pods that a user names, one by one or by what owns them. Pure.

Names are written as kubectl takes them, `web-1 web-2`, `pod web-1`, `deployment/web job/import`, or
as it prints them: `deployment.apps/web`.
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
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "daemonset"),
    **dict.fromkeys(("job", "jobs"), "job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "cronjob"),
}


KINDS: Final = tuple(dict.fromkeys(_ALIASES.values()))
"""Those that are known by name; pods may be owned by others."""


@dataclass(frozen=True, slots=True)
class NamedResource:
    """A pod, or what owns pods: a kind in small letters, and a name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def is_one_pod(wanted: Sequence[NamedResource]) -> bool:
    """Tell whether a single pod is named, and nothing else."""
    return len(wanted) == 1 and wanted[0].kind == POD


def parse(arguments: Sequence[str]) -> list[NamedResource]:
    """Return what is named; ConfigError if that makes no sense."""
    if any("/" in each for each in arguments):
        return [_pair(each) for each in arguments]

    kind = _ALIASES.get(_kind(arguments[0])) if len(arguments) > 1 else None
    return [NamedResource(kind or POD, name) for name in arguments[1 if kind else 0 :]]


def _pair(argument: str) -> NamedResource:
    kind, _slash, name = argument.partition("/")
    if not kind or not name or "/" in name:
        raise ConfigError(
            f"{argument!r} is no KIND/NAME: write pod/web-1, deployment/web, or names of pods"
        )

    return NamedResource(_ALIASES.get(_kind(kind), _kind(kind)), name)


def _kind(word: str) -> str:
    """Return the kind in small letters, without the group that kubectl may print behind it."""
    return word.lower().partition(".")[0]


def of_owner(pods: Iterable[Object], owner: NamedResource) -> Objects:
    """Return the pods of an owner: their controller, or the maker of their ReplicaSet."""
    return [pod for pod in pods if owner in _owners(pod)]


def _owners(pod: Object) -> set[NamedResource]:
    workload, _slash, rest = workload_of(pod).partition("/")
    found = {NamedResource(workload.partition(".")[0], rest.partition("/")[2])}
    if (controller := objects.controller_reference(pod)) is not None:
        found.add(
            NamedResource(str(controller.get("kind") or "").lower(), str(controller.get("name")))
        )

    return found
