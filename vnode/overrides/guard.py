"""Refuses overrides of what vnode itself relies on, and results that are no pods. Pure.

A delegate has to stay the delegate of its proxy: found by its labels, allowed by its annotations,
scheduled by the candidate scheduler, reported container by container, ended as its proxy ends. What
decides about that is the source's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vnode.api import keys, names, pod_shape, service_tokens
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.overrides import pod_form
from vnode.overrides.json_patch import Pointer

_REASONS: Final = {
    "schedulerName": "vnode chooses the scheduler of a delegate",
    "nodeName": "the target's scheduler chooses the node",
    "schedulingGates": "the source has waited for them",
    "priority": "the target sets it by the priority class",
    "overhead": "the target sets it by the runtime class",
    "serviceAccount": "use serviceAccountName",
    "automountServiceAccountToken": "the Target says whose tokens a delegate has",
    "ephemeralContainers": "they are added to pods that run",
    "readinessGates": "conditions travel by those of the proxy",
    "restartPolicy": "the source judges by it whether a pod has ended",
    "terminationGracePeriodSeconds": "a delegate ends in the time that its proxy has",
}
_LISTED: Final = ("containers", "initContainers")


def check(before: Object, after: Object) -> None:
    """Check what rules made of `before`, a pod's metadata and spec; ConfigError if that cannot be.

    Both have `metadata`, with labels and annotations, and `spec`.
    """
    if (why := pod_shape.problem(after) or pod_form.problem(after)) is not None:
        raise ConfigError(f"what comes of it is no pod: {why}")

    for field, problems in (("labels", label_problems), ("annotations", annotation_problems)):
        old, new = before["metadata"].get(field) or {}, after["metadata"].get(field) or {}
        changed = {k: str(new.get(k, "")) for k in old.keys() | new.keys() if _moved(old, new, k)}
        for problem in problems(changed):
            raise ConfigError(f"metadata.{field}: {problem}")

    spec, wanted = before["spec"], after["spec"]
    for field, reason in _REASONS.items():
        if spec.get(field) != wanted.get(field):
            raise ConfigError(f"spec.{field} cannot be overridden: {reason}")

    for field in _LISTED:
        if _names(spec, field) != _names(wanted, field):
            raise ConfigError(
                f"spec.{field} cannot get other containers, or another order: the proxy shows the "
                "status of each of its own"
            )

    if _tokens(spec) != _tokens(wanted):
        raise ConfigError(
            "tokens of service accounts cannot be overridden: the Target says whose tokens a "
            "delegate has"
        )


def label_problems(labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with labels that are set."""
    yield from _key_problems(labels)
    for key, value in labels.items():
        if value and not names.LABEL_VALUE.fullmatch(value):
            yield f'"{value[:63]}" cannot be the value of label {key[:63]}'


def annotation_problems(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with annotations that are set."""
    yield from _key_problems(annotations)


def path_problems(path: Pointer) -> Iterator[str]:
    """Yield why nothing may be written at a path, as far as that shows without a pod."""
    if path[0] == "metadata":
        yield from _key_problems(dict.fromkeys(path[2:3], ""))
        if len(path) > 3:
            yield f"{path[1]} hold text, which has no parts"
    elif reason := _REASONS.get(path[1]):
        yield f"spec.{path[1]} cannot be overridden: {reason}"
    elif path[1] in _LISTED and (len(path) < 4 or path[3] == "name"):
        yield f"spec.{path[1]} cannot get other containers: change the fields of those there are"


def _key_problems(entries: Mapping[str, str]) -> Iterator[str]:
    for key in entries:
        if not keys.is_foreign(key):
            yield f"{key[:100]} cannot be overridden: vnode itself relies on it"
        elif not names.QUALIFIED_NAME.fullmatch(key):
            yield f'"{key[:63]}" cannot be a key'


def _moved(old: Object, new: Object, key: str) -> bool:
    return (key in old) != (key in new) or old.get(key) != new.get(key)


def _names(spec: Object, field: str) -> list[Any]:
    return [container.get("name") for container in spec.get(field) or ()]


def _tokens(spec: Object) -> tuple[Objects, list[list[Objects]]]:
    """Return the volumes with tokens that the spec projects, and what is mounted in their place."""
    volumes = [
        volume for volume in spec.get("volumes") or () if any(service_tokens.projected(volume))
    ]
    names_ = {volume["name"] for volume in volumes}
    mounted = [
        [
            [
                mount
                for mount in service_tokens.mounts(container)
                if mount.get("mountPath") == keys.SERVICE_ACCOUNT_MOUNT
                or mount.get("name") in names_
            ]
            for container in spec.get(field) or ()
        ]
        for field in _LISTED
    ]
    return volumes, mounted
