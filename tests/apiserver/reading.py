"""The reads of one API server: objects, pages of lists, and what is shown of them."""

from __future__ import annotations

import base64
import json
from typing import Final

from tests.apiserver import resources, selection, status
from tests.apiserver.requests import APIRequest
from tests.apiserver.store import ResourceStore
from vnode.api import objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

_META: Final = "meta.k8s.io/v1"


class Reader:
    """Gets and lists objects of a store. The pages of a list show one moment."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        self._rest: dict[str, tuple[int, Objects]] = {}  # by continue token

    def get(self, request: APIRequest, kind: Kind) -> Object:
        """Return the object that is named; StatusError if it is not there."""
        found = self._store.get(kind, request.key)
        if found is None:
            raise status.not_found(kind, request.name)

        return shown(found, request)

    def list(self, request: APIRequest, kind: Kind) -> Object:
        """Return one page of the objects that match."""
        version, found = self._found(request, kind)
        limit = int(request.query.get("limit") or 0) or len(found)
        page, rest = found[:limit], found[limit:]
        metadata: Object = {"resourceVersion": str(version)}
        if rest:
            position = {"v": "meta.k8s.io/v1", "rv": version, "start": objects.key(page[-1])}
            token = base64.b64encode(json.dumps(position).encode()).decode()
            self._rest[token] = version, rest
            metadata |= {"continue": token, "remainingItemCount": len(rest)}

        is_metadata = "as=PartialObjectMetadata" in request.accept
        items = [_item(shown(obj, request), kind) for obj in page]
        return {
            "apiVersion": _META if is_metadata else kind.api_version,
            "kind": "PartialObjectMetadataList" if is_metadata else f"{kind.kind}List",
            "metadata": metadata,
            "items": items or (None if is_metadata else []),  # as Go writes a list never filled
        }

    def forget(self) -> None:
        """Expire all continue tokens."""
        self._rest.clear()

    def _found(self, request: APIRequest, kind: Kind) -> tuple[int, Objects]:
        token = request.query.get("continue")
        if not token:
            matches = selection.of(request, kind)
            return self._store.version, [obj for obj in self._store.all(kind) if matches(obj)]

        if token not in self._rest:
            raise status.expired("The provided continue parameter is too old to display [...]")

        return self._rest[token]


def shown(obj: Object, request: APIRequest) -> Object:
    """Return the object, or only its metadata if the request asks for that."""
    if "as=PartialObjectMetadata" not in request.accept:
        return obj

    return {
        "apiVersion": _META,
        "kind": "PartialObjectMetadata",
        "metadata": obj["metadata"],
    }


def _item(obj: Object, kind: Kind) -> Object:
    """Leave out the type, which the items of built-in kinds do not have."""
    if resources.is_custom(kind) or obj["kind"] == "PartialObjectMetadata":
        return obj

    return {field: value for field, value in obj.items() if field not in ("apiVersion", "kind")}
