"""Remembers annotations that objects have as far as is known, before their API server says so.

As in kube-scheduler's assume cache, readers see them like those that were written, and what the
API server has comes first. Pure.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object


class AssumedAnnotations:
    """Keeps annotations by the UID of their object, which may be yet to come."""

    def __init__(self) -> None:
        # Only those that the API server is not known to have; no empty ones.
        self._by_uid: dict[str, dict[str, str]] = {}

    def add(self, uid: str, annotation: str, value: str) -> None:
        """Assume that an object has an annotation."""
        self._by_uid[uid] = {**self._by_uid.get(uid, {}), annotation: value}

    def remove(self, uid: str, annotation: str) -> bool:
        """Assume it no longer; tell whether it was assumed."""
        assumed = self._by_uid.get(uid, {})
        if assumed.pop(annotation, None) is None:
            return False

        if not assumed:
            del self._by_uid[uid]

        return True

    def has(self, uid: str, annotation: str) -> bool:
        """Tell whether an annotation of an object is assumed."""
        return annotation in self._by_uid.get(uid, {})

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._by_uid.pop(uid, None)

    def shown(self, obj: Object) -> Object:
        """Return an object of the API server with what is assumed; what it has is not any more."""
        if not self._by_uid or (assumed := self._by_uid.get(objects.uid(obj))) is None:
            return obj

        known = objects.annotations(obj)
        missing = {k: v for k, v in assumed.items() if k not in known}
        if not missing:
            del self._by_uid[objects.uid(obj)]
            return obj

        self._by_uid[objects.uid(obj)] = missing
        return _annotated(obj, {**known, **missing})


def changed(obj: Object, annotation: str, value: str | None) -> Object:
    """Return an object with an annotation; without it for None."""
    others = {k: v for k, v in objects.annotations(obj).items() if k != annotation}
    return _annotated(obj, others if value is None else {**others, annotation: value})


def _annotated(obj: Object, annotations: dict[str, str]) -> Object:
    return {**obj, "metadata": {**objects.metadata(obj), "annotations": annotations}}
