"""Calls one API server: JSON in, JSON out, errors as the classes of `vnode.api.errors`.

Each verb of the API is a method here; `transport` sends the requests. What writes goes through
`_write`, which has the audit log say on whose behalf (`vnode.telemetry.audit`).
"""

from __future__ import annotations

import logging
from typing import Any, Final

from vnode.api import errors, objects, shapes
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube import answer_limits, answers, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.decoding import Kept
from vnode.kube.endpoint import Endpoint
from vnode.kube.namespace_scope import EVERYTHING, NamespaceScope
from vnode.kube.paging import ListReader
from vnode.kube.transport import JSON, METADATA_LIST, Transport
from vnode.telemetry import audit

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"

_METHODS: Final = {
    "create": "POST",
    "patch": "PATCH",
    "apply": "PATCH",
    "update": "PUT",
    "delete": "DELETE",
}

log = logging.getLogger(__name__)


class Client(Transport):
    """Sends the verbs of the API for any kind. Use as an async context manager.

    `scope` says to which namespaces it is held; by default to none.
    """

    def __init__(
        self, endpoint: Endpoint, *, name: str, scope: NamespaceScope = EVERYTHING
    ) -> None:
        super().__init__(endpoint, name=name)
        self.scope = scope

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object; NotFound if it does not exist."""
        answer = await self._ask(kind, "GET", kind.path(namespace, name))
        return answers.object_of(answer, self.name, f"{kind.kind} {name}")

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: AnswerLimit | None = None,
        kept: Kept = decoding.whole,
    ) -> Objects:
        """Return what is `kept` of all objects that match, of all namespaces if none is named.

        If the client is held to namespaces, those are meant; one that refuses counts as empty,
        unless all do. What cannot be read as an object is left out, and hides nothing else.
        TooLarge if those of a namespace are out of the bound `limit`.
        """
        items: Objects = []
        places = self.scope.places(kind, namespace)
        refusals: list[errors.Denied] = []
        for place in places:
            try:
                found, _version = await self.list_at(
                    kind,
                    place,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=limit,
                    kept=kept,
                )
            except errors.Denied as error:
                refusals.append(error)
                if len(refusals) == len(places):
                    raise
            else:
                items += [item for item in found if shapes.is_object(item)]

        return items

    async def list_at(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        limit: AnswerLimit | None = None,
        kept: Kept = decoding.whole,
    ) -> tuple[Objects, str]:
        """Return what is `kept` of all objects that match, and the version to watch from.

        They are read in pages of one consistent snapshot; Gone if that expires on the way. With
        `metadata_only` the server sends nothing but metadata. TooLarge if all pages together are
        out of the bound `limit`, Unreachable if there are too many pages.
        """
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {name: value for name, value in selectors.items() if value}
        accept = METADATA_LIST if metadata_only else JSON
        reader = ListReader(self, kind, accept=accept, limit=limit, kept=kept)
        return await reader.read(kind.path(namespace), query)

    async def version(self, kind: Kind, namespace: str | None = None) -> str:
        """Return the resource version from which a watch shows what happens from now on."""
        return await ListReader(self, kind, accept=JSON).version(kind.path(namespace))

    async def create(
        self,
        kind: Kind,
        obj: Object,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
    ) -> Object:
        """Create an object, or post it to a subresource of the object `name`; return the answer."""
        if subresource is None:
            obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}

        namespace = namespace or objects.namespace(obj) or None
        return await self._write("create", kind, name, namespace, subresource, body=obj)

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        strategic: bool = False,
    ) -> Object:
        """Apply a JSON merge patch; `metadata.uid` or `resourceVersion` in it is a precondition.

        A strategic merge patch merges lists by their entries' names; only built-in kinds take it.
        """
        content_type = STRATEGIC_PATCH if strategic else MERGE_PATCH
        return await self._write(
            "patch", kind, name, namespace, subresource, body=body, content_type=content_type
        )

    async def json_patch(self, kind: Kind, name: str, operations: Objects) -> Object:
        """Apply a JSON patch to an object without a namespace."""
        return await self._write(
            "patch", kind, name, None, None, body=operations, content_type=JSON_PATCH
        )

    async def apply(
        self,
        kind: Kind,
        obj: Object,
        *,
        subresource: str | None = None,
        force: bool = True,
        manager: str = "vnode",
    ) -> Object:
        """Apply on the server side: create the object, or own the fields that it names."""
        return await self._write(
            "apply",
            kind,
            objects.name(obj),
            objects.namespace(obj) or None,
            subresource,
            query={"fieldManager": manager, "force": "true" if force else "false"},
            body={"apiVersion": kind.api_version, "kind": kind.kind, **obj},
            content_type=APPLY_PATCH,
        )

    async def try_apply(self, kind: Kind, obj: Object, *, manager: str = "vnode") -> Object:
        """Return what `apply` would; nothing is changed."""
        path = kind.path(objects.namespace(obj) or None, objects.name(obj))
        query = {"fieldManager": manager, "force": "true", "dryRun": "All"}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        answer = await self._ask(
            kind, "PATCH", path, query=query, body=body, content_type=APPLY_PATCH
        )
        return answers.object_of(answer, self.name, f"{kind.kind} {objects.name(obj)}")

    async def replace(self, kind: Kind, obj: Object, *, subresource: str | None = None) -> Object:
        """Update an object (PUT) that was built here; never one that was read."""
        namespace = objects.namespace(obj) or None
        return await self._write(
            "update", kind, objects.name(obj), namespace, subresource, body=obj
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
        propagation: str | None = None,
    ) -> Object | None:
        """Delete an object, with that grace period in seconds; Conflict if it is another one.

        That is one of another UID than `uid`, or of another resource version than `version`.

        Returns the object if finalizers or its grace period keep it for now, else None.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        conditions = {"uid": uid, "resourceVersion": version}
        if given := {field: value for field, value in conditions.items() if value}:
            options["preconditions"] = given

        if grace is not None:
            options["gracePeriodSeconds"] = grace

        if propagation:
            options["propagationPolicy"] = propagation

        answer = await self._write("delete", kind, name, namespace, None, body=options)
        return answer if objects.uid(answer) else None

    async def discard(self, kind: Kind, obj: Object, *, grace: int | None = None) -> Object | None:
        """Delete exactly this object; no error if it is gone or another one has its name now.

        Returns what `delete` returns. A Conflict that is not about the UID is raised.
        """
        name, namespace = objects.name(obj), objects.namespace(obj) or None
        try:
            return await self.delete(kind, name, namespace, uid=objects.uid(obj), grace=grace)
        except errors.NotFound:
            log.debug("%s %s of %s is gone already", kind.kind, objects.key(obj), self.name)
        except errors.Conflict:
            if await self._uid(kind, name, namespace) == objects.uid(obj):
                raise

        return None

    async def _write(
        self,
        verb: str,
        kind: Kind,
        name: str | None,
        namespace: str | None,
        subresource: str | None,
        *,
        body: Any,
        **options: Any,
    ) -> Object:
        """Send what changes something, and have it audited once it was accepted.

        Objects are created without a name in the path, and what belongs to one with it.
        """
        path = kind.path(namespace, name, subresource)
        answer = await self._ask(kind, _METHODS[verb], path, body=body, **options)
        audit.changed(
            verb,
            kind,
            answer if isinstance(answer, dict) else {},
            cluster=self.name,
            namespace=namespace or "",
            name=name or "",
            subresource=subresource,
            body=body,
        )
        return answers.outcome_of(answer, self.name, f"{kind.kind} {name or ''}".rstrip())

    async def _ask(self, kind: Kind, method: str, path: str, **options: Any) -> Any:
        """Send a request whose answer is an object of that kind, or a Status."""
        return await self.request(method, path, bound=answer_limits.of_object(kind), **options)

    async def _uid(self, kind: Kind, name: str, namespace: str | None) -> str:
        """Return the UID of the object that has the name now; "" if none has."""
        try:
            return objects.uid(await self.get(kind, name, namespace))
        except errors.NotFound:
            return ""
