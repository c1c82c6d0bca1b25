"""Changes of pods that wait, and what is bound after them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.apiserver.store import Change
from tests.unit.pods.clusters import SourceCluster
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

Edit = Callable[[Object], None]


SLOW = 0.02  # seconds until a binding is carried out


BACKOFF = 11.0


"""Seconds within which a pod that was changed is tried again."""


def image(name: str) -> Edit:
    def edit(pod: Object) -> None:
        pod["spec"]["containers"][0]["image"] = name

    return edit


def label(pod: Object) -> None:
    pod["metadata"].setdefault("labels", {})["team"] = "blue"


def numbered(number: int) -> Edit:
    """Have a label be another with each number."""

    def edit(pod: Object) -> None:
        pod["metadata"].setdefault("labels", {})["team"] = str(number)

    return edit


def annotate(pod: Object) -> None:
    pod["metadata"].setdefault("annotations", {})["note"] = "new"


def annotate_renaming(pod: Object) -> None:
    pod["metadata"].setdefault("annotations", {})[keys.NO_PREFIX_LABEL_REGEXP] = "^example.com/app="


def resize(pod: Object) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}


def limit(pod: Object) -> None:
    pod["spec"]["activeDeadlineSeconds"] = 60


def tolerate(pod: Object) -> None:
    pod["spec"]["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]


EDITS = (image("new"), label, annotate, resize, limit, tolerate)


class Bindings:
    """Notes what each pod was when it was bound, and what its target had for it then."""

    def __init__(self, source: SourceCluster) -> None:
        self._source = source
        self.found: list[tuple[Object, Object]] = []
        source.server.store.changed.add(self._on_change)

    def _on_change(self, kind: Kind, change: Change) -> None:
        new, old = change.new, change.old
        if kind is not kinds.PODS or not new or not objects.node_name(new):
            return

        if old and not objects.node_name(old):
            name, node = objects.name(new), objects.node_name(new)
            (target,) = (each for each in self._source.targets if each.node == node)
            self.found.append((copy.deepcopy(new), copy.deepcopy(target.candidate(name))))


def edit(source: SourceCluster, change: Edit, name: str = "p") -> None:
    source.server.change(kinds.PODS, name, "default", change)


def shown(obj: Object) -> Object:
    """Return what a proxy and its chaperon have in common."""
    (container,) = objects.spec(obj)["containers"]
    return {
        "image": container.get("image"),
        "resources": container.get("resources"),
        "deadline": objects.spec(obj).get("activeDeadlineSeconds"),
        "tolerations": objects.spec(obj).get("tolerations"),
        "team": objects.labels(obj).get("team") or objects.labels(obj).get(keys.PREFIX + "team"),
        "note": objects.annotations(obj).get("note"),
    }


def pod_of(source: SourceCluster, **fields: Any) -> Object:
    containers = [{"name": "main", "image": "old", "resources": {"requests": {"cpu": "1"}}}]
    return source.add("p", spec={"containers": containers}, **fields)
