"""Rewrites references to fields of the pod, so that a delegate shows its proxy's values. No I/O.

A delegate has another name and UID than its proxy, other keys of labels, and not all annotations. A
kubelet that finds no such label or annotation shows nothing, and reports no error. So a reference
to a label names the key that it has in the target. What no reference in the target could show gets
the value that the proxy has: in a variable as it is, in a file by an annotation of the delegate
that was made for it (`keys.FIELD`).

In a chain the first proxy counts, the pod that its user knows: its values are in the variables by
then, and the annotations travel on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, objects, renaming, route
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.patterns import LabelPattern
from vnode.api.service_tokens import CONTAINERS

NAME: Final = "metadata.name"
UID: Final = "metadata.uid"
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_DIGITS: Final = 10
_MOST_FIELDS: Final = 200
_MOST: Final = 256 * 1024
"""Characters of values in variables: ten thousand variables may each show the same annotation."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Fields that a pod may show: the proxy's, and the labels by which its delegate has the same.

    `made` are the annotations that the delegate is to have besides, which `rewrite` fills in.
    `resolved` has what each path has led to, and `written` how long the values of variables are.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    delegate_labels: Mapping[str, str]
    keep: LabelPattern | None
    is_delegate: bool
    made: dict[str, str] = field(default_factory=dict)
    resolved: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    written: list[int] = field(default_factory=lambda: [0])

    def write(self, value: str) -> str:
        """Return a value as that of a variable; ConfigError if all have become too long."""
        self.written[0] += len(value)
        if self.written[0] > _MOST:
            raise ConfigError(
                f"the variables by which containers are shown fields of the pod have more than "
                f"{_MOST} characters, as targets cannot show them otherwise: show long annotations "
                "in files of a downwardAPI volume"
            )

        return value.replace("$", "$$")  # a kubelet expands $(NAME) in it


def shown(proxy: Object, source: Object, delegate_labels: Mapping[str, str]) -> Shown:
    """Collect the fields of a proxy, given its pod as the user wrote it and the delegate's labels.

    A delegate that is sent on by an agent that left its references as they were knows the name and
    UID of its own proxy.
    """
    annotations, labels = objects.annotations(proxy), objects.labels(proxy)
    name, uid, is_delegate = objects.name(proxy), objects.uid(proxy), route.is_delegate(proxy)
    if is_delegate:
        name = annotations.get(keys.PARENT_NAME, name)
        uid = labels.get(keys.PARENT_UID, uid)

    own = {key: value for key, value in annotations.items() if keys.is_foreign(key)}
    own |= {k: v for k, v in objects.annotations(source).items() if not keys.is_foreign(k)}
    keep = renaming.kept_labels_of(proxy)
    return Shown(name, uid, labels, own, delegate_labels, keep, is_delegate)


def onward(proxy: Object) -> dict[str, str]:
    """Return the annotations that were made for fields of a delegate, which is sent on."""
    if not route.is_delegate(proxy):
        return {}

    return {k: v for k, v in objects.annotations(proxy).items() if k.startswith(keys.FIELD)}


def rewrite(spec: Object, pod: Shown) -> None:
    """Make all references to fields show the proxy's values.

    `spec` is the caller's own, what is in it is not.
    """
    for part in CONTAINERS:
        if part in spec:
            spec[part] = [_container(container, pod) for container in spec[part] or ()]

    if "volumes" in spec:
        spec["volumes"] = [_volume(volume, pod) for volume in spec["volumes"] or ()]


def _container(container: Object, pod: Shown) -> Object:
    env = container.get("env") or []
    wanted = [_variable(entry, pod) for entry in env]
    return {**container, "env": wanted} if wanted != env else container


def _variable(entry: Object, pod: Shown) -> Object:
    reference = (entry.get("valueFrom") or {}).get("fieldRef")
    if not reference:
        return entry

    path = str(reference.get("fieldPath"))
    target_path, value = _resolve(path, pod)
    if value is not None:
        others = {k: v for k, v in entry.items() if k != "valueFrom"}
        return {**others, "value": pod.write(value)}

    if target_path == path:
        return entry

    return {**entry, "valueFrom": {**entry["valueFrom"], "fieldRef": _to(reference, target_path)}}


def _volume(volume: Object, pod: Shown) -> Object:
    if own := volume.get("downwardAPI"):
        return {**volume, "downwardAPI": _files(own, pod)}

    projected = volume.get("projected")
    if not projected or not any(s.get("downwardAPI") for s in projected.get("sources") or ()):
        return volume

    sources = [
        {**source, "downwardAPI": _files(source["downwardAPI"], pod)}
        if source.get("downwardAPI")
        else source
        for source in projected["sources"]
    ]
    return {**volume, "projected": {**projected, "sources": sources}}


def _files(downward: Object, pod: Shown) -> Object:
    items = [_item(item, pod) for item in downward.get("items") or ()]
    return {**downward, "items": items} if items else downward


def _item(item: Object, pod: Shown) -> Object:
    reference = item.get("fieldRef")
    if not reference:
        return item

    path = str(reference.get("fieldPath"))
    target_path, value = _resolve(path, pod)
    if value is not None:
        key = _annotation(path)
        pod.made[key] = value
        target_path = f"metadata.annotations['{key}']"

    return {**item, "fieldRef": _to(reference, target_path)} if target_path != path else item


def _to(reference: Object, path: str) -> Object:
    return {**reference, "fieldPath": path}


def _annotation(path: str) -> str:
    """Return the annotation that is made for a field; name and UID stay readable in it."""
    if path in (NAME, UID):
        return keys.FIELD + path.rpartition(".")[2]

    return keys.FIELD + hashlib.sha256(path.encode()).hexdigest()[:_DIGITS]


def _resolve(path: str, pod: Shown) -> tuple[str, str | None]:
    """Return the path that shows the value in the delegate; where none does, the value, too.

    Containers mostly refer to the same fields.
    """
    if (known := pod.resolved.get(path)) is None:
        if len(pod.resolved) >= _MOST_FIELDS:
            raise ConfigError(
                f"containers are shown over {_MOST_FIELDS} different fields of the pod: show "
                f"{_MOST_FIELDS} at most"
            )

        known = pod.resolved[path] = _resolved(path, pod)

    return known


def _resolved(path: str, pod: Shown) -> tuple[str, str | None]:
    if path == NAME:
        return path, pod.name

    if path == UID:
        return path, pod.uid

    found = _KEYED.fullmatch(path)
    if found is None:
        return path, None

    return (_label if found[1] == "labels" else _annotated)(path, found[2], pod)


def _label(path: str, key: str, pod: Shown) -> tuple[str, str | None]:
    """Resolve a label; one that the pod lacks is referred to by the key that it would have."""
    if key.startswith(renaming.NODE_LABELS):
        return path, None  # the target sets it when it binds the delegate

    value = pod.labels.get(key, "")
    target_key = renaming.label_key(key, value, pod.keep)
    if pod.delegate_labels.get(target_key, "") != value:
        return path, value  # it stays behind, or another label took its place

    return f"metadata.labels['{target_key}']", None


def _annotated(path: str, key: str, pod: Shown) -> tuple[str, str | None]:
    if keys.travels(key) or (pod.is_delegate and key.startswith(keys.FIELD)):
        return path, None

    return path, pod.annotations.get(key, "")
