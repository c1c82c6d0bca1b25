"""Tells the owners of objects apart: by namespace and UID, never by the UID alone.

An owner reference is what whoever made the object has written: it may name a UID of another
namespace, which Kubernetes' garbage collector would not follow. So whatever is found, counted or
given by owner goes by an `OwnerKey`, which nothing but this module makes.
"""

from __future__ import annotations

from typing import NewType

from vnode.api import objects
from vnode.api.objects import Object

OwnerKey = NewType("OwnerKey", str)
"""NAMESPACE/UID of a controlling owner, /UID of that of a cluster-wide object."""


def owner_key(obj: Object) -> OwnerKey | None:
    """Return the controlling owner of an object, None if it has none."""
    uid = objects.controller_uid(obj)
    return OwnerKey(f"{objects.namespace(obj)}/{uid}") if uid else None


def key_as_owner(obj: Object) -> OwnerKey:
    """Return the key of the owner that an object is to others of its namespace."""
    return OwnerKey(f"{objects.namespace(obj)}/{objects.uid(obj)}")
