"""What a copy in a target looks like, and how we recognize our copies: pure.

A copy has the name, namespace, labels and annotations of its original, and names its origin by
Admiralty's labels and annotations (docs/admiralty-contract.md, section 11), so that either program
recognizes it.

One annotation of the copy (`keys.FOLLOWED`) lists which labels and annotations come from the
original. So one that the original loses is removed from the copy, and those that somebody in the
target added stay. Where a target fills in fields of a specification, the annotation also has a
digest of the specification that was sent, and its fields: they tell a field that the original has
lost from one that the target has added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vnode.api import cluster_bound, documents, keys, objects
from vnode.api.cluster_bound import Anyway
from vnode.api.identity import Identity
from vnode.api.objects import TOTAL_ANNOTATION_SIZE, Object

TOKEN_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type, not a secret
"""Secrets that the source's API server fills in, and of no use elsewhere."""

_NAMES: Final = ("name", "namespace", "uid", "resourceVersion")
_CONTENT: Final = ("immutable", "type", "data", "binaryData")


class _Followed(msgspec.Struct, omit_defaults=True):
    """Keys of labels and annotations that come from the original; fields and digest of the spec."""

    labels: list[str] = []
    annotations: list[str] = []
    fields: list[str] = []
    spec: str = ""


def metadata(
    original: Object,
    identity: Identity,
    more: Mapping[str, str] | None = None,
    *,
    spec: Object | None = None,
    anyway: Anyway = cluster_bound.never,
) -> Object:
    """Build the metadata of a copy.

    The annotations `more` are set in any case; `spec` is recorded as sent. `anyway` tells what
    travels though it stays by the table of `vnode.api.cluster_things`.
    """
    annotations = {
        k: v
        for k, v in objects.annotations(original).items()
        if keys.is_foreign(k) and cluster_bound.travels(k, anyway)
    } | dict(more or {})
    labels = {k: v for k, v in objects.labels(original).items() if keys.is_foreign(k)}
    followed = _Followed(sorted(labels), sorted(filter(keys.is_foreign, annotations)))
    if spec is not None:
        followed.fields, followed.spec = sorted(spec), _sha256(spec)

    if followed != _Followed():
        annotations[keys.FOLLOWED] = msgspec.json.encode(followed).decode()

    annotations[keys.PARENT_NAMESPACE] = objects.namespace(original)
    annotations[keys.PARENT_NAME] = objects.name(original)
    annotations[keys.PARENT_CLUSTER_UID] = identity.uid
    labels[keys.PARENT_UID] = objects.uid(original)
    labels[keys.PARENT_CLUSTER_NAME] = identity.name
    return {
        "name": objects.name(original),
        "namespace": objects.namespace(original),
        "labels": labels,
        "annotations": annotations,
    }


def marks(copy: Object) -> str:
    """Return a digest of the labels and annotations that come from the original."""
    followed = _followed(copy)
    labels, annotations = objects.labels(copy), objects.annotations(copy)
    return _sha256(
        [
            {key: labels.get(key) for key in followed.labels},
            {key: annotations.get(key) for key in followed.annotations},
        ]
    )


def followed_annotations(copy: Object) -> list[str]:
    """Return the annotations of a copy that have come from the original."""
    return _followed(copy).annotations


def sent(copy: Object) -> str:
    """Return the digest of the specification that was last sent; "" if none is recorded."""
    return _followed(copy).spec


def has_all_of(copy: Object, wanted: Object, spec: Object) -> bool:
    """Tell whether the copy was made as `wanted`, and still has all of this specification."""
    return sent(copy) == sent(wanted) and holds(objects.spec(copy), spec)


def holds(present: Any, wanted: Any) -> bool:
    """Tell whether `present` has all of `wanted`; other fields may be a server's defaults."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            key in present and holds(present[key], value) for key, value in wanted.items()
        )

    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(present) == len(wanted)
            and all(map(holds, present, wanted))
        )

    return bool(present == wanted)


def added(copy: Object) -> Object:
    """Return the fields that the target has added to a specification; all of them if none is
    recorded."""
    sent = frozenset(_followed(copy).fields)
    return {field: value for field, value in objects.spec(copy).items() if field not in sent}


def _followed(copy: Object) -> _Followed:
    """Read the annotation; empty if there is none or somebody has spoilt it."""
    text = objects.annotations(copy).get(keys.FOLLOWED, "{}")
    if len(text) > TOTAL_ANNOTATION_SIZE:
        return _Followed()

    try:
        return msgspec.json.decode(text, type=_Followed)
    except documents.NO_JSON:
        return _Followed()


def content(original: Object, identity: Identity) -> Object:
    """Build the copy of a ConfigMap or Secret."""
    fields: Object = {field: original[field] for field in _CONTENT if field in original}
    return {"metadata": metadata(original, identity), **fields}


def digest(obj: Object) -> str:
    """Return a digest that differs if, and only if, the content of a ConfigMap or Secret does."""
    held = [obj.get(field) or None for field in _CONTENT]
    return _sha256(held)


def _sha256(held: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(held, order="sorted")).hexdigest()


def trim(copy: Object) -> Object:
    """Return what is kept of a copy in a target: a digest in place of its content."""
    return {"metadata": objects.metadata(copy), "digest": digest(copy)}


def only_names(original: Object) -> Object:
    """Return what is kept of an original: that it exists, and in which version."""
    meta = objects.metadata(original)
    return {"metadata": {field: meta[field] for field in _NAMES if field in meta}}


def successor(body: Object, present: Object) -> Object:
    """Return `body` as an update of `present`; labels and annotations that others added stay."""
    meta, followed = body["metadata"], _followed(present)
    before = {*followed.annotations, keys.FOLLOWED}
    labels = {k: v for k, v in objects.labels(present).items() if k not in followed.labels}
    annotations = {k: v for k, v in objects.annotations(present).items() if k not in before}
    metadata = {
        **meta,
        "labels": {**labels, **meta["labels"]},
        "annotations": {**annotations, **meta["annotations"]},
    }
    return objects.if_unchanged({**body, "metadata": metadata}, present)


def is_stray(secret: Object) -> bool:
    """Tell whether a Secret never follows: a token, issued here or copied by another cluster."""
    return secret.get("type") == TOKEN_TYPE or keys.TOKEN in objects.labels(secret)
