"""The writes of one API server: what of a new state is stored, and under which conditions.

A write reads the present state, builds the next one, and stores it in one step, as an API server
does with optimistic locking: nothing here awaits. A state that equals the present one is not
stored, so it has no version and no watch sees it.
"""

from __future__ import annotations

import random
import re
import string
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from tests.apiserver import copying, pods, resources, rules, status
from tests.apiserver.store import ResourceStore
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_LIMIT: Final = 253


class ObjectWriter:
    """Creates, updates and deletes objects of a store; StatusError for what must not be."""

    def __init__(self, store: ResourceStore, clock: Clock, ids: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    def now(self, seconds: float = 0) -> str:
        """Write the time, or that many seconds later, as the API does."""
        return objects.timestamp(self._clock.now() + timedelta(seconds=seconds))

    def new_uid(self) -> str:
        """Draw a UID."""
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))

    def create(self, kind: Kind, obj: Object, namespace: str, *, dry: bool = False) -> Object:
        """Create an object."""
        obj = self._named(kind, obj, namespace)
        self._check_namespace(kind, namespace)
        name, key = objects.name(obj), objects.key(obj)
        if self._store.get(kind, key) is not None:
            raise status.already_exists(kind, name)

        metadata = rules.tidy(obj["metadata"])
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            metadata.pop(field, None)

        metadata |= {"uid": self.new_uid(), "creationTimestamp": self.now()}
        if resources.has_generation(kind):
            metadata["generation"] = 1

        obj = rules.typed(kind, {**obj, "metadata": metadata})
        if resources.is_custom(kind):
            obj.pop("status", None)
        elif kind in resources.INITIAL_STATUS:
            obj["status"] = copying.deep(resources.INITIAL_STATUS[kind])

        if kind is kinds.PODS:
            obj = pods.with_defaults(obj)
        elif kind is kinds.NAMESPACES:
            obj["spec"] = {"finalizers": ["kubernetes"]}

        return obj if dry else self._store.put(kind, obj)

    def update(
        self,
        kind: Kind,
        key: str,
        change: Callable[[Object], Object],
        *,
        subresource: str = "",
        is_patch: bool = False,
        dry: bool = False,
    ) -> Object:
        """Store what `change` makes of an object, as far as the subresource may change it."""
        old = self.present(kind, key)
        wanted = change(old)
        rules.check_preconditions(kind, old, wanted, subresource, is_patch=is_patch)
        new = rules.writable(kind, old, wanted, subresource)
        metadata = {k: v for k, v in rules.tidy(new["metadata"]).items() if k not in rules.SYSTEM}
        metadata |= {
            field: old["metadata"][field] for field in rules.SYSTEM if field in old["metadata"]
        }
        new = rules.typed(kind, {**new, "metadata": metadata})
        rules.check_update(kind, old, new, subresource)
        if new == old:
            return old

        if resources.has_generation(kind) and rules.counted(kind, old) != rules.counted(kind, new):
            metadata["generation"] = int(metadata.get("generation") or 0) + 1

        if dry:
            return new

        if rules.is_over(kind, new):
            self._store.remove(kind, key)
            return new

        return self._store.put(kind, new)

    def bind(self, key: str, binding: Object) -> None:
        """Put a pod on a node."""
        pod = self.present(kinds.PODS, key)
        self._store.put(kinds.PODS, pods.bound(pod, binding, self.now()))

    def end_grace(self, key: str, options: Object | None) -> bool:
        """Write that a pod that ends has no more time, the step before the API server removes it.

        False where a deletion does not come to that.
        """
        pod, options = self._store.get(kinds.PODS, key) or {}, options or {}
        uid = (options.get("preconditions") or {}).get("uid")
        is_due = options.get("gracePeriodSeconds") == 0 and not objects.finalizers(pod)
        left = objects.metadata(pod).get("deletionGracePeriodSeconds")
        if not (is_due and left) or uid not in (None, objects.uid(pod)):
            return False

        metadata = {
            **pod["metadata"],
            "deletionTimestamp": self.now(),
            "deletionGracePeriodSeconds": 0,
        }
        self._store.put(kinds.PODS, {**pod, "metadata": metadata})
        return True

    def delete(
        self, kind: Kind, key: str, options: Object | None = None, *, dry: bool = False
    ) -> tuple[Object, bool]:
        """Delete an object, at once or in the end; its last state, and whether it is gone."""
        options = options or {}
        old = self.present(kind, key)
        wanted = options.get("preconditions") or {}
        for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if wanted.get(field) and wanted[field] != old["metadata"][field]:
                found = old["metadata"][field]
                raise status.precondition(kind, objects.name(old), name, wanted[field], found)

        if rules.is_over(kind, old):  # only if a deletion was cut off between its two steps
            return old if dry else self._store.remove(kind, key), True

        asked = options.get("gracePeriodSeconds")
        seconds = pods.grace(old, asked) if kind is kinds.PODS else 0
        if objects.is_terminating(old):
            present = int(old["metadata"].get("deletionGracePeriodSeconds") or 0)
            if asked is None or seconds >= present:
                return old, False

        if not seconds and not objects.finalizers(old) and not rules.has_content(kind):
            return old if dry else self._store.remove(kind, key), True

        metadata = dict(old["metadata"])
        if "generation" in metadata and not objects.is_terminating(old):
            metadata["generation"] += 1

        metadata |= {
            "deletionTimestamp": self.now(seconds),
            "deletionGracePeriodSeconds": seconds,
        }
        marked = {**old, "metadata": metadata}
        if kind is kinds.NAMESPACES:
            marked["status"] = {**objects.status(old), "phase": "Terminating"}

        return marked if dry else self._store.put(kind, marked), False

    def present(self, kind: Kind, key: str) -> Object:
        """Return the object of that key, as it is stored; StatusError if there is none."""
        found = self._store.get(kind, key)
        if found is None:
            raise status.not_found(kind, objects.split_key(key)[1])

        return found

    def _named(self, kind: Kind, obj: Any, namespace: str) -> Object:
        """Copy an object, and give it a name and a namespace."""
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
            raise status.bad_request("the object provided is unrecognized")

        metadata = dict(obj.get("metadata") or {})
        if metadata.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise status.StatusError(500, "", message)

        if not metadata.get("name") and metadata.get("generateName"):
            letters = "".join(self._ids.choices(string.ascii_lowercase + string.digits, k=5))
            metadata["name"] = metadata["generateName"] + letters

        if not metadata.get("name"):
            cause = "Required value: name or generateName is required"
            raise status.invalid(kind, "", "metadata.name", cause)

        name = str(metadata["name"])
        valid = len(name) <= _NAME_LIMIT and _NAME.fullmatch(name)
        if not kind.group.startswith("rbac.") and not valid:
            cause = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of [...]'
            raise status.invalid(kind, name, "metadata.name", cause)

        if kind.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise status.bad_request(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
        else:
            metadata.pop("namespace", None)

        return {**obj, "metadata": metadata}

    def _check_namespace(self, kind: Kind, namespace: str) -> None:
        if not kind.namespaced:
            return

        found = self._store.get(kinds.NAMESPACES, namespace)
        if found is None:
            raise status.not_found(kinds.NAMESPACES, namespace)

        if objects.is_terminating(found):
            why = "unable to create new content in namespace because it is being terminated"
            raise status.forbidden(kind, namespace, why)
