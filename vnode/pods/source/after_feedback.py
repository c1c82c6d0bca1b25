"""Judges a proxy pod as it is after a patch of feedback: is it too large, and has it all? Pure.

Another cluster reports what comes back: no target may fill the source's etcd, nor a pod's room for
annotations. Many small patches add up to a large object, so the pod after the patch counts. And
what an API server left out of a patch, without a word, would be sent again for ever.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import TOTAL_ANNOTATION_SIZE, Object
from vnode.pods import conditions, status_size
from vnode.pods.source.proxy_state import MANIFEST_BYTES

# Bytes of JSON that a pod may have by feedback, of the annotations that an API server takes: some
# stay for users.
ANNOTATIONS_LIMIT: Final = 192 * 1024
# Bytes of a status beside what is reported: conditions that the source's controllers have set.
_OWN_STATUS: Final = 64 * 1024


def exceeds(proxy: Object, patch: Object) -> str:
    """Return what the pod would have after this patch, if that exceeds a limit; else "".

    The result counts: many small patches add up to a large one. Honest clusters have no reason for
    so much, unless the pod's own annotations leave no room.
    """
    most = status_size.limit(proxy) + _OWN_STATUS
    if _outgrows(objects.status(proxy), _after(proxy, objects.status(patch)), most):
        return f"a status of over {most} bytes, as only conditions or unknown fields can take"

    news = objects.annotations(patch)
    if not news:
        return ""

    known = dict(objects.annotations(proxy))
    manifest = {k: v for k in (keys.SOURCE_POD_MANIFEST,) if (v := known.pop(k, None)) is not None}
    after = objects.without_nulls(objects.merge_patches(known, news))
    if _outgrows(known, after, ANNOTATIONS_LIMIT):
        return f"annotations of over {ANNOTATIONS_LIMIT} bytes"

    if _total(after) + (_total(manifest) or proxy.get(MANIFEST_BYTES, 0)) > TOTAL_ANNOTATION_SIZE:
        return f"more than the {TOTAL_ANNOTATION_SIZE} bytes of annotations that a pod may have"

    return ""


def _after(proxy: Object, patch: Object) -> Object:
    """Return the status after a patch; replaced lists still have their `$patch` directive."""
    if not patch:
        return objects.status(proxy)

    changes = {field: value for field, value in patch.items() if field != "conditions"}
    after = objects.merge_patches(objects.status(proxy), changes)
    after["conditions"] = conditions.patched(conditions.of(proxy), patch.get("conditions") or [])
    return {k: v for k, v in after.items() if v is not None}


def _outgrows(known: Object, after: Object, limit: int) -> bool:
    """Return whether the size after a patch is over the limit, and over the size before."""
    size = len(msgspec.json.encode(after))
    return size > limit and size > len(msgspec.json.encode(known))


def _total(annotations: Object) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def is_taken(after: Object, patch: Object) -> bool:
    """Tell whether a pod has what a patch of status or annotations was to give it.

    False also where that is not plain to see: then compare what is wanted with the pod.
    """
    entries = objects.status(patch).get("conditions") or []
    wanted = {str(entry.get("type")): entry for entry in entries}
    if any("$patch" in entry for entry in entries):
        return False

    fields = {k: v for k, v in objects.status(patch).items() if k != "conditions"}
    return (
        _has(conditions.of(after), wanted)
        and _has(objects.status(after), fields)
        and _has(objects.annotations(after), objects.annotations(patch))
    )


def _has(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(_has(value.get(k), v) for k, v in wanted.items())

    if isinstance(wanted, list) and wanted and wanted[0] == {"$patch": "replace"}:
        return bool(value == wanted[1:])

    return bool(value == wanted)
