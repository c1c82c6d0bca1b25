"""Lets override policies change a delegate, and keeps apart what they changed. No I/O.

Which rules apply, and what they do, `vnode.overrides` knows; the agent hands it in. Here is where
they take effect, and what follows from that for a pod that runs: chaperon and proxy differ for
good, and that difference is no news. A note on the chaperon says how to undo it, so that both can
be compared as if there were no overrides.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from vnode.api import changeable, keys, objects
from vnode.api.objects import Object
from vnode.pods import annotation_merge
from vnode.runtime.link import Link

_LABELS, _ANNOTATIONS = "labels", "annotations"


class Override(Protocol):
    """What policies want of one pod in one target."""

    @property
    def rules(self) -> object:
        """Equal for two that do the same."""
        ...

    def apply(self, pod: Object) -> Object:
        """Return what becomes of a pod (`metadata` with labels and annotations, `spec`).

        Raises ConfigError if that fails.
        """
        ...

    def record(self, before: Object, after: Object) -> dict[str, str]:
        """Return the annotations by which the chaperon remembers it."""
        ...


class Overrides(Protocol):
    """Finds the overrides of pods."""

    def choose(self, pod: Object, link: Link) -> Override | None:
        """Return what the present policies want of a pod there, None for nothing.

        Raises VnodeError if the pod must not go there now.
        """
        ...

    def recorded(self, pod: Object, chaperon: Object, link: Link) -> Override | None:
        """Return by what the chaperon of a pod was made; ConfigError if that cannot be known."""
        ...


class NoOverrides:
    """Stands in where there are no policies."""

    def choose(self, _pod: Object, _link: Link) -> Override | None:
        """Return None."""
        return None

    def recorded(self, _pod: Object, _chaperon: Object, _link: Link) -> Override | None:
        """Return None."""
        return None


def note(before: Object, after: Object) -> str:
    """Return the note on a chaperon: merge patches from what it has to what it would have.

    It has labels and annotations, and of the spec what `changeable.view` has; the rest of a spec
    never changes.
    """
    undo: Object = {}
    for field in (_LABELS, _ANNOTATIONS):
        old, new = before["metadata"].get(field) or {}, after["metadata"].get(field) or {}
        if diff := objects.merge_diff(new, old):
            undo[field] = diff

    views = (changeable.view(objects.spec(pod)) for pod in (after, before))
    if diff := objects.merge_diff(*views):
        undo["spec"] = diff

    return annotation_merge.text(undo)


def own_annotations(chaperon: Object) -> Collection[str]:
    """Return the annotations that are the delegate's own: they do not travel, either way."""
    return _part(chaperon, _ANNOTATIONS).keys()


def undone(chaperon: Object) -> Object:
    """Return a chaperon as it would be without overrides, as far as it is compared with its proxy.

    The same object if it has none.
    """
    if keys.OVERRIDDEN not in objects.annotations(chaperon):
        return chaperon

    metadata = dict(objects.metadata(chaperon))
    metadata[_LABELS] = _patched(objects.labels(chaperon), _part(chaperon, _LABELS))
    spec = changeable.patched(objects.spec(chaperon), _part(chaperon, "spec"))
    return {**chaperon, "metadata": metadata, "spec": spec}


def _part(chaperon: Object, part: str) -> Object:
    if keys.OVERRIDDEN not in objects.annotations(chaperon):
        return {}

    found = annotation_merge.read(chaperon, keys.OVERRIDDEN).get(part)
    return found if isinstance(found, dict) else {}


def _patched(values: dict[str, Any], patch: Object) -> Object:
    return {k: v for k, v in {**values, **patch}.items() if v is not None}
