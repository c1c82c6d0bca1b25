"""Reads fields of Kubernetes objects.

An object is the JSON that the API server sent, decoded once into dicts and lists: fields that our
code does not name are neither checked nor lost. Objects in informer stores are shared by all
readers, so nothing here or elsewhere changes in place what one says: `pods.source.shared_parts` at
most puts equal values in place of others.
"""

from datetime import MAXYEAR, UTC, datetime
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]
"""One JSON object of the Kubernetes API."""

Objects: TypeAlias = list[Object]
"""Several of them."""

TOTAL_ANNOTATION_SIZE: Final = 256 * 1024
"""Bytes of keys and values of all annotations of an object, beyond which API servers refuse it."""


def metadata(obj: Object) -> Object:
    """Return `metadata`, or an empty dict."""
    return obj.get("metadata") or {}


def spec(obj: Object) -> Object:
    """Return `spec`, or an empty dict."""
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    """Return `status`, or an empty dict."""
    return obj.get("status") or {}


def name(obj: Object) -> str:
    """Return `metadata.name`, "" if there is none yet."""
    return str(metadata(obj).get("name", ""))


def namespace(obj: Object) -> str:
    """Return `metadata.namespace`, "" for a cluster-scoped object."""
    return str(metadata(obj).get("namespace", ""))


def uid(obj: Object) -> str:
    """Return `metadata.uid`."""
    return str(metadata(obj).get("uid", ""))


def resource_version(obj: Object) -> str:
    """Return `metadata.resourceVersion`: opaque, only ever compared for equality."""
    return str(metadata(obj).get("resourceVersion", ""))


def created(obj: Object) -> str:
    """Return `metadata.creationTimestamp`, "" if there is none; such texts sort by time."""
    return str(metadata(obj).get("creationTimestamp") or "")


def created_at(obj: Object) -> datetime | None:
    """Return the moment at which the object was created, None if it has none."""
    return parse_timestamp(created(obj))


def labels(obj: Object) -> dict[str, str]:
    """Return `metadata.labels`, or an empty dict."""
    return metadata(obj).get("labels") or {}


def annotations(obj: Object) -> dict[str, str]:
    """Return `metadata.annotations`, or an empty dict."""
    return metadata(obj).get("annotations") or {}


def finalizers(obj: Object) -> list[str]:
    """Return `metadata.finalizers`, or an empty list."""
    return metadata(obj).get("finalizers") or []


def finalizers_without(obj: Object, *names: str) -> list[str]:
    """Return the object's finalizers but for these, in their order."""
    return [finalizer for finalizer in finalizers(obj) if finalizer not in names]


def finalizers_patch(obj: Object, finalizers: list[str]) -> Object:
    """Build the merge patch that sets finalizers; it is a conflict once the object has changed."""
    return if_unchanged({"metadata": {"finalizers": finalizers}}, obj)


def if_unchanged(patch: Object, obj: Object) -> Object:
    """Return the patch with a precondition: it is a conflict once the object has changed."""
    versioned = {"uid": uid(obj), "resourceVersion": resource_version(obj)}
    return {**patch, "metadata": {**metadata(patch), **versioned}}


def status_patch(obj: Object, status: Object) -> Object:
    """Build the patch of an object's status; it is a conflict for another object of its name."""
    return {"metadata": {"uid": uid(obj)}, "status": status}


def latest(old: Object | None, new: Object | None) -> Object:
    """Return the object of an informer's event: as it is, or as it was before its deletion."""
    return new or old or {}


def key(obj: Object) -> str:
    """Return `namespace/name`, or the name alone for a cluster-scoped object."""
    return join_key(namespace(obj), name(obj))


def join_key(namespace: str, name: str) -> str:
    """Return the key of an object, given its parts."""
    return f"{namespace}/{name}" if namespace else name


def split_key(key: str) -> tuple[str, str]:
    """Return (namespace, name); the namespace is "" for a cluster-scoped object."""
    left, slash, right = key.partition("/")
    return (left, right) if slash else ("", left)


def key_namespace(key: str) -> str:
    """Return the namespace of the object of that key; "" for a cluster-scoped one."""
    return split_key(key)[0]


def is_terminating(obj: Object) -> bool:
    """Tell whether deletion was requested; finalizers or a grace period keep the object."""
    return "deletionTimestamp" in metadata(obj)


def node_name(pod: Object) -> str:
    """Return the node that a pod is bound to, "" for a pod that waits for one."""
    return str(spec(pod).get("nodeName") or "")


def is_finished(pod: Object) -> bool:
    """Tell whether a pod has succeeded or failed: none of its containers runs again."""
    return status(pod).get("phase") in ("Succeeded", "Failed")


def has_run(pod: Object) -> bool:
    """Tell whether containers of a pod have run, as its phase says."""
    return status(pod).get("phase") == "Running" or is_finished(pod)


def priority(pod: Object) -> int:
    """Return the priority in a pod's spec, 0 if it has none; higher ones go first."""
    return int(spec(pod).get("priority") or 0)


def controller_uid(obj: Object) -> str:
    """Return the UID of the controlling owner, "" if there is none."""
    for reference in metadata(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid", ""))

    return ""


def controller_reference(obj: Object) -> Object | None:
    """Return the controlling owner reference, if there is one."""
    for reference in metadata(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            owner: Object = reference
            return owner

    return None


def condition(obj: Object, type_: str) -> Object | None:
    """Return the status condition of that type, if there is one."""
    for entry in status(obj).get("conditions") or ():
        if entry.get("type") == type_:
            found: Object = entry
            return found

    return None


def is_condition_true(obj: Object, type_: str) -> bool:
    """Tell whether the object has a status condition of that type, which is true."""
    return (condition(obj, type_) or {}).get("status") == "True"


def is_ready(obj: Object) -> bool:
    """Tell whether the condition Ready of a pod, a chaperon, a Target or a Node is true."""
    return is_condition_true(obj, "Ready")


def reference(obj: Object, kind: str, api_version: str) -> Object:
    """Build an ObjectReference, as Events and Bindings want it."""
    ref = {"apiVersion": api_version, "kind": kind, "name": name(obj), "uid": uid(obj)}
    if space := namespace(obj):
        ref["namespace"] = space

    return ref


def timestamp(moment: datetime) -> str:
    """Format a metav1.Time: RFC 3339 in UTC, whole seconds."""
    return _rfc3339(moment, "seconds")


def micro_timestamp(moment: datetime) -> str:
    """Format a metav1.MicroTime: RFC 3339 in UTC, microseconds."""
    return _rfc3339(moment, "microseconds")


def _rfc3339(moment: datetime, precision: str) -> str:
    # `strftime` takes several times as long, and each status has some times.
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime | None:
    """Parse a metav1.Time or MicroTime; None if it is not one.

    One in the first or the last year of the calendar is none, as nobody can compute with it: Go's
    zero time, or somebody's mischief.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None

    return found if 1 < found.year < MAXYEAR else None


def merge_diff(old: Object, new: Object) -> Object:
    """Return the JSON merge patch (RFC 7386) that turns `old` into `new`; empty if they are equal.

    Lists are replaced whole, as merge patches do. `new` must hold no nulls: a merge patch cannot
    write one.
    """
    patch: Object = {}
    for field in old.keys() - new.keys():
        patch[field] = None

    for field, value in new.items():
        before = old.get(field)
        if before == value and field in old:
            continue

        if isinstance(before, dict) and isinstance(value, dict):
            patch[field] = merge_diff(before, value)
        else:
            patch[field] = value

    return patch


def merge_patches(first: Object, then: Object) -> Object:
    """Return one merge patch that does what `first`, then `then` do; nulls stay nulls."""
    both = dict(first)
    for field, value in then.items():
        before = both.get(field)
        both[field] = (
            merge_patches(before, value)
            if isinstance(before, dict) and isinstance(value, dict)
            else value
        )

    return both


def without_nulls(value: Any) -> Any:
    """Drop fields that are null, at any depth: servers keep, fill in or drop them."""
    if isinstance(value, dict):
        return {
            k: without_nulls(inner) if isinstance(inner, dict | list) else inner
            for k, inner in value.items()
            if inner is not None
        }

    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
