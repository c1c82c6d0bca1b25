"""Applies one rule to a pod: what its fields say, in their order. No I/O.

The pod is as the target will have it, `metadata` with labels and annotations and `spec`: its labels
have their keys there, and what has chosen the virtual node is left out. It is the caller's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from vnode.api import objects
from vnode.api.objects import Object
from vnode.overrides import checking, guard, images, json_patch
from vnode.overrides.rules import (
    EnvironmentOverride,
    ImageOverride,
    OverrideRule,
    ResourcesOverride,
    WordsOverride,
)

MOST_WORK: Final = 2 * 1024 * 1024
"""Bytes that are gone through for one pod: some 50 ms for each MiB."""

_MAPS: Final = ("labels", "annotations")
_EACH: Final = ("image", "command", "args", "env", "resources", "patches")
"""Lists of a rule, for each entry of which the pod is gone through."""


def clone(pod: Object) -> Object:
    """Return a copy of a pod that the rules may change, with both maps of its metadata."""
    made: Object = msgspec.json.decode(msgspec.json.encode(pod))
    return _normal(made)


def work(pod: Object, rule: OverrideRule) -> int:
    """Return how many bytes it takes at most to apply a rule, which may write to each container."""
    passes = 1 + sum(len(getattr(rule, field) or ()) for field in _EACH)
    containers = sum(1 for _ in _chosen(pod["spec"], None))
    return passes * len(msgspec.json.encode(pod)) + containers * len(msgspec.json.encode(rule))


def apply(pod: Object, rule: OverrideRule) -> None:
    """Apply a rule, which `checking.check` has passed, in place; ConfigError if that fails."""
    before, spec = clone(pod), pod["spec"]
    for image in rule.image or ():
        _image(spec, image)

    for words in rule.command or ():
        _words(spec, "command", words)

    for words in rule.args or ():
        _words(spec, "args", words)

    for env in rule.env or ():
        _env(spec, env)

    for field in _MAPS:
        pod["metadata"][field].update(getattr(rule, field) or {})

    for resources in rule.resources or ():
        _resources(spec, resources)

    _placement(spec, rule)
    if rule.patches:
        json_patch.apply(pod, map(checking.operation, rule.patches))
        pod["spec"] = objects.without_nulls(pod["spec"])  # as API servers keep it

    _normal(pod)
    guard.check(before, pod)
    if pod["spec"].get("serviceAccountName") != before["spec"].get("serviceAccountName"):
        pod["spec"].pop("serviceAccount", None)  # the old name of the same field


def _normal(pod: Object) -> Object:
    """Have both maps in the metadata, which patches may have removed."""
    for field in _MAPS:
        if pod["metadata"].get(field) is None:
            pod["metadata"][field] = {}

    return pod


def _chosen(spec: Object, names: Collection[str] | None) -> Iterator[Object]:
    wanted = None if names is None else frozenset(names)
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            if wanted is None or container.get("name") in wanted:
                yield container


def _image(spec: Object, override: ImageOverride) -> None:
    for container in _chosen(spec, override.containers):
        if name := container.get("image"):
            container["image"] = images.changed(
                name,
                registry=override.registry,
                repository=override.repository,
                tag=override.tag,
                digest=override.digest,
            )


def _words(spec: Object, field: str, override: WordsOverride) -> None:
    for container in _chosen(spec, override.containers):
        if override.set_ is None:
            words = [*(container.get(field) or ()), *(override.append or ())]
        else:
            words = list(override.set_)

        _put(container, field, words)


def _env(spec: Object, override: EnvironmentOverride) -> None:
    wanted = {variable.name: msgspec.to_builtins(variable) for variable in override.set_ or ()}
    removed = frozenset(override.remove or ())
    for container in _chosen(spec, override.containers):
        env = [
            wanted.get(entry["name"], entry)
            for entry in container.get("env") or ()
            if entry["name"] not in removed
        ]
        present = {entry["name"] for entry in env}
        env += [entry for name, entry in wanted.items() if name not in present]
        _put(container, "env", env)


def _resources(spec: Object, override: ResourcesOverride) -> None:
    for container in _chosen(spec, override.containers):
        resources = dict(container.get("resources") or {})
        for field, wanted in (("requests", override.requests), ("limits", override.limits)):
            if wanted:
                resources[field] = {**(resources.get(field) or {}), **wanted}

        container["resources"] = resources


def _placement(spec: Object, rule: OverrideRule) -> None:
    if rule.node_selector:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **rule.node_selector}

    if rule.tolerations:
        present = spec.get("tolerations") or []
        known = set(map(_text, present))
        added = [msgspec.to_builtins(toleration) for toleration in rule.tolerations]
        spec["tolerations"] = [*present, *(each for each in added if _text(each) not in known)]

    if rule.runtime_class_name is not None:
        _put(spec, "runtimeClassName", rule.runtime_class_name)


def _text(toleration: Object) -> bytes:
    """Return what equal ones have in common: a list of thousands is gone through once."""
    return msgspec.json.encode(toleration, order="sorted")


def _put(holder: Object, field: str, value: list[str] | list[Object] | str) -> None:
    """Set a field; what is empty is left out, as API servers do."""
    if value:
        holder[field] = value
    else:
        holder.pop(field, None)
