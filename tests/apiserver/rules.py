"""What of a wanted state is stored: the rules of updates, for all kinds alike. Pure."""

from __future__ import annotations

import base64
from typing import Final

from tests.apiserver import pods, resources, status
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

SYSTEM: Final = (
    "uid",
    "name",
    "namespace",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
"""Metadata that only the server writes."""

_OPTIONAL: Final = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")
"""Metadata that is left out when it is empty."""


def check_preconditions(
    kind: Kind, old: Object, wanted: Object, subresource: str, *, is_patch: bool
) -> None:
    """Refuse a write of another object, or of another version, than the one it names.

    A UID is a precondition of a replacement; a patch tries to change it, which is invalid, unless
    it is of the status of a custom resource, where metadata is not looked at.
    """
    metadata, name = objects.metadata(wanted), objects.name(old)
    if metadata.get("name", name) != name:
        raise status.bad_request("the name of the object does not match the name on the URL")

    version = metadata.get("resourceVersion")
    if version and version != objects.resource_version(old):
        raise status.modified(kind, name)

    uid = metadata.get("uid")
    if not uid or uid == objects.uid(old):
        return

    if not is_patch:
        raise status.precondition(kind, name, "UID", uid, objects.uid(old))

    if not subresource or not resources.is_custom(kind):
        cause = f'Invalid value: "{uid}": field is immutable'
        raise status.invalid(kind, name, "metadata.uid", cause)


def writable(kind: Kind, old: Object, wanted: Object, subresource: str) -> Object:
    """Take from the wanted state what the subresource ("" for none) may change."""
    if subresource in ("status", "approval"):
        if not resources.has_status(kind):
            raise status.unknown_path()

        if resources.is_custom(kind):
            return {**old, "status": wanted["status"]} if "status" in wanted else _without(old)

        kept = {"spec": old["spec"]} if "spec" in old else {}
        return {field: value for field, value in wanted.items() if field != "spec"} | kept

    if kind is kinds.PODS and subresource == "resize":
        return pods.resized(old, wanted)

    if kind is kinds.PODS and subresource == "ephemeralcontainers":
        return pods.with_ephemeral(old, wanted)

    if subresource:
        raise status.unknown_path()

    if not resources.has_status(kind):
        return wanted

    return {**wanted, "status": old["status"]} if "status" in old else _without(wanted)


def _without(obj: Object) -> Object:
    return {field: value for field, value in obj.items() if field != "status"}


def check_update(kind: Kind, old: Object, new: Object, subresource: str) -> None:
    """Refuse what an update must not change; StatusError."""
    name = objects.name(old)
    before, after = set(objects.finalizers(old)), set(objects.finalizers(new))
    if objects.is_terminating(old) and after - before:
        cause = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            f"finalizers {sorted(after - before)}"
        )
        raise status.invalid(kind, name, "metadata.finalizers", cause)

    if kind is kinds.PODS and not subresource:
        pods.check_update(old, new)

    if old.get("immutable") and kind in (kinds.CONFIG_MAPS, kinds.SECRETS):
        for field in ("immutable", "data", "binaryData"):
            if old.get(field) != new.get(field):
                cause = "Forbidden: field is immutable when `immutable` is set"
                raise status.invalid(kind, name, field, cause)

    if kind is kinds.SECRETS and old.get("type") != new.get("type"):
        cause = f'Invalid value: "{new.get("type")}": field is immutable'
        raise status.invalid(kind, name, "type", cause)


def has_content(kind: Kind) -> bool:
    """Tell whether it stays until a controller has removed what is in it: a namespace does."""
    return kind is kinds.NAMESPACES


def is_over(kind: Kind, obj: Object) -> bool:
    """Tell whether it is being deleted, and nothing keeps it any more."""
    return (
        objects.is_terminating(obj)
        and not has_content(kind)
        and not objects.finalizers(obj)
        and not obj["metadata"].get("deletionGracePeriodSeconds")
    )


def counted(kind: Kind, obj: Object) -> Object:
    """Select what of an object its generation counts the changes of."""
    if not resources.is_custom(kind) and "spec" in obj:
        return objects.spec(obj)

    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}


def typed(kind: Kind, obj: Object) -> Object:
    """Set the kind's own type, whatever was sent, and bring a Secret into its stored form."""
    obj = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind") and v is not None}
    if kind is kinds.SECRETS:
        texts = obj.pop("stringData", {})
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}
        obj = {"type": "Opaque", **obj}
        if data := {**(obj.get("data") or {}), **encoded}:
            obj["data"] = data

    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def with_system_metadata(metadata: Object, old: Object) -> Object:
    """Take from the old metadata what only the server writes, and the rest from the new."""
    own = {k: v for k, v in tidy(metadata).items() if k not in SYSTEM}
    return own | {k: v for k, v in old.items() if k in SYSTEM}


def tidy(metadata: Object) -> Object:
    """Leave out what is empty."""
    return {k: v for k, v in metadata.items() if v is not None and (v or k not in _OPTIONAL)}
