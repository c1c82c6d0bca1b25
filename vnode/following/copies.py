"""What a copy in a target looks like, and how one is known as ours: pure.

A copy has the name, namespace, labels and annotations of its original, and says where it comes from
by Admiralty's labels and annotations (contract, 11), so that either program recognises it.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from vnode.api import keys, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's notes about the original, a second copy of all its data: it stays behind."""

TOKEN_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type, not a secret
"""Secrets that the source's API server fills in, and of no use elsewhere."""

_NAMES: Final = ("name", "namespace", "uid", "resourceVersion")
_CONTENT: Final = ("immutable", "type", "data", "binaryData")


def metadata(original: Object, identity: Identity) -> Object:
    """The metadata of a copy."""
    notes = {
        key: value
        for key, value in objects.annotations(original).items()
        if keys.is_foreign(key) and key != LAST_APPLIED
    }
    notes[keys.PARENT_NAMESPACE] = objects.namespace(original)
    notes[keys.PARENT_NAME] = objects.name(original)
    notes[keys.PARENT_CLUSTER_UID] = identity.uid
    labels = {k: v for k, v in objects.labels(original).items() if keys.is_foreign(k)}
    labels[keys.PARENT_UID] = objects.uid(original)
    labels[keys.PARENT_CLUSTER_NAME] = identity.name
    return {
        "name": objects.name(original),
        "namespace": objects.namespace(original),
        "labels": labels,
        "annotations": notes,
    }


def content(original: Object, identity: Identity) -> Object:
    """The copy of a ConfigMap or Secret."""
    fields: Object = {field: original[field] for field in _CONTENT if field in original}
    return {"metadata": metadata(original, identity), **fields}


def digest(obj: Object) -> str:
    """Differs if, and only if, what a ConfigMap or Secret holds does."""
    held = [obj.get(field) or None for field in _CONTENT]
    return hashlib.sha256(msgspec.json.encode(held, order="sorted")).hexdigest()


def trim(copy: Object) -> Object:
    """What is kept of a copy in a target: not what it holds, only whether that is right."""
    return {"metadata": objects.metadata(copy), "digest": digest(copy)}


def only_names(original: Object) -> Object:
    """What is kept of an original: whether it is there, and in which version."""
    meta = objects.metadata(original)
    return {"metadata": {field: meta[field] for field in _NAMES if field in meta}}


def successor(body: Object, present: Object) -> Object:
    """`body` as an update of what is there; labels and annotations that others added stay."""
    meta = body["metadata"]
    return {
        **body,
        "metadata": {
            **meta,
            "labels": {**objects.labels(present), **meta["labels"]},
            "annotations": {**objects.annotations(present), **meta["annotations"]},
            "uid": objects.uid(present),
            "resourceVersion": objects.resource_version(present),
        },
    }


def is_stray(secret: Object) -> bool:
    """A Secret that never follows."""
    return secret.get("type") == TOKEN_TYPE
