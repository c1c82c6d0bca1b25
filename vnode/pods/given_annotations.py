"""Tells the annotations that a source gave a chaperon from those of its delegate. Pure.

What injectors, networks and admission of the target put on a delegate is shown on its chaperon, and
so in the source. But it belongs to that one pod: a delegate that is made anew must not have it, or
an injector takes it for one that has been injected. So the target notes on the chaperon which of
its annotations are not as the source gave them (`keys.REPORTED`), in the patch that changes them.

A source that runs vnode records what it has sent (`changes`); that counts, since it may send
something else later. By it, chaperons that a target without the note reported on are read, too.
"""

from __future__ import annotations

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.pods import annotation_merge, overriding


def of(chaperon: Object) -> dict[str, str]:
    """Return the annotations of others that the source gave a chaperon."""
    annotations = objects.annotations(chaperon)
    given = annotation_merge.foreign(chaperon)
    noted = annotation_merge.read(chaperon, keys.REPORTED)
    for key, value in noted.items():
        given.pop(key, None)
        if isinstance(value, str) and keys.is_foreign(key):
            given[key] = value

    if keys.DELEGATE_FINALIZER not in objects.finalizers(chaperon):
        return given

    sent = _sent(chaperon)
    is_reported = bool(objects.status(chaperon).get("phase")) or keys.REPORTED in annotations
    if is_reported and keys.PARENT_CLUSTER_UID in annotations:
        apart = overriding.own_annotations(chaperon)
        given = {key: value for key, value in given.items() if key in apart or key in sent}

    return given | sent


def _sent(chaperon: Object) -> dict[str, str]:
    sent = annotation_merge.read(chaperon, keys.SENT).get("annotations")
    known = sent.items() if isinstance(sent, dict) else ()
    return {k: v for k, v in known if isinstance(v, str) and keys.is_foreign(k)}


def note(chaperon: Object, wanted: Object) -> str | None:
    """Return the note that a chaperon is to have with these annotations; None for none."""
    given = of(chaperon)
    shown = {key: value for key, value in wanted.items() if keys.is_foreign(key)}
    differing = {
        key: given.get(key)
        for key in given.keys() | shown.keys()
        if given.get(key) != shown.get(key)
    }
    return annotation_merge.text(differing) if differing else None
