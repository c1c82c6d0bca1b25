"""The calls to one API server: JSON in, JSON out, errors as the classes of `vnode.api.errors`.

Short requests share a bounded pool of connections, so that a burst queues here rather than in TLS
handshakes; watches and streams have connections of their own. Nothing is retried: whoever asked
knows whether asking again is right.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from vnode import __version__
from vnode.api import errors, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube import answers
from vnode.kube.endpoint import Endpoint
from vnode.telemetry import metrics

JSON: Final = "application/json"
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PAGE: Final = 500  # objects a list request asks for, as client-go's pager does
MOST_OBJECTS: Final = 500_000  # in one list; what no cluster has is a server that does not stop
_POOL: Final = 48  # connections for short requests
_URGENT: Final = 4  # connections of their own for leases, which must not wait behind a burst
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=5)  # seconds

log = logging.getLogger(__name__)


class Client:
    """One API server. Use as an async context manager.

    `name` is what logs and metrics call the cluster.
    """

    def __init__(self, endpoint: Endpoint, *, name: str) -> None:
        self.endpoint = endpoint
        self.name = name
        self._requests = metrics.Requests(name)
        self._agent = f"vnode/{__version__}"
        self._short: aiohttp.ClientSession | None = None
        self._long: aiohttp.ClientSession | None = None
        self._urgent: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._short = self._session(_POOL)
        self._long = self._session(0)
        self._urgent = self._session(_URGENT)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; running requests fail."""
        for session in (self._short, self._long, self._urgent):
            if session is not None:
                await session.close()

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=limit, ssl=self.endpoint.ssl or False, keepalive_timeout=60
        )
        return aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": self._agent}, auto_decompress=True
        )

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """One object; NotFound if it is not there."""
        return await self._object("GET", kind.path(namespace, name))

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        """All objects that match, of all namespaces if none is named."""
        items, _version = await self.list_at(
            kind, namespace, label_selector=label_selector, field_selector=field_selector
        )
        return items

    async def list_at(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> tuple[Objects, str]:
        """All objects that match, and the resource version to watch from.

        Read in pages of one consistent snapshot; Gone if that expires on the way. With
        `metadata_only` the server sends nothing but metadata.
        """
        query = {"limit": str(PAGE)}
        if label_selector:
            query["labelSelector"] = label_selector

        if field_selector:
            query["fieldSelector"] = field_selector

        items: Objects = []
        while True:
            accept = METADATA_LIST if metadata_only else JSON
            page = await self._object("GET", kind.path(namespace), query=query, accept=accept)
            items += page.get("items") or ()
            if len(items) > MOST_OBJECTS:
                raise errors.Unreachable(
                    f"{self.name}: a list of {kind.plural} has no end (over {MOST_OBJECTS})"
                )

            if not (token := objects.metadata(page).get("continue")):
                return items, objects.resource_version(page)

            query["continue"] = token

    async def create(
        self,
        kind: Kind,
        obj: Object,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
    ) -> Object:
        """Create an object, or post to a subresource of the one named."""
        if subresource is None:
            obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}

        namespace = namespace or objects.namespace(obj) or None
        return await self._object("POST", kind.path(namespace, name, subresource), body=obj)

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

        A strategic one merges lists by their entries' names, which only built-in kinds know.
        """
        path = kind.path(namespace, name, subresource)
        content_type = STRATEGIC_PATCH if strategic else MERGE_PATCH
        return await self._object("PATCH", path, body=body, content_type=content_type)

    async def apply(
        self,
        kind: Kind,
        obj: Object,
        *,
        subresource: str | None = None,
        force: bool = True,
        manager: str = "vnode",
    ) -> Object:
        """Server-side apply: create the object, or make the fields named in it ours."""
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self._object(
            "PATCH",
            kind.path(objects.namespace(obj) or None, objects.name(obj), subresource),
            query={"fieldManager": manager, "force": "true" if force else "false"},
            body=body,
            content_type=APPLY_PATCH,
        )

    async def replace(self, kind: Kind, obj: Object, *, subresource: str | None = None) -> Object:
        """Update (PUT). For objects that were built here, never for ones that were read."""
        path = kind.path(objects.namespace(obj) or None, objects.name(obj), subresource)
        return await self._object("PUT", path, body=obj)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        grace: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete an object: of that UID only (else Conflict), with that grace period in seconds."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}

        if grace is not None:
            options["gracePeriodSeconds"] = grace

        if propagation:
            options["propagationPolicy"] = propagation

        await self.request("DELETE", kind.path(namespace, name), body=options)

    async def discard(self, kind: Kind, obj: Object, *, grace: int | None = None) -> None:
        """Delete this very object; one that is gone, or was replaced by a namesake, is no error.

        A Conflict may be about something else than the UID: then it is raised.
        """
        name, namespace = objects.name(obj), objects.namespace(obj) or None
        try:
            await self.delete(kind, name, namespace, uid=objects.uid(obj), grace=grace)
        except errors.NotFound:
            log.debug("%s %s of %s is gone already", kind.kind, objects.key(obj), self.name)
        except errors.Conflict:
            if await self._uid(kind, name, namespace) == objects.uid(obj):
                raise

    async def _uid(self, kind: Kind, name: str, namespace: str | None) -> str:
        """Of the object that has the name now; "" if none has."""
        try:
            return objects.uid(await self.get(kind, name, namespace))
        except errors.NotFound:
            return ""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Any:
        """Any request; the decoded answer, None if it is empty.

        Raises an ApiError for an error answer, Unreachable if there was none in time, or if the
        client was closed meanwhile (aiohttp's RuntimeError).
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        return answers.decode(await self._exchange(method, path, query, data, headers))

    async def text(self, path: str) -> str:
        """An answer that is text, not JSON. Raises as `request` does."""
        payload = await self._exchange("GET", path, None, None, {"Accept": "*/*"})
        return payload.decode(errors="replace")

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
    ) -> bytes:
        assert self._short is not None, "enter the client first"
        assert self._urgent is not None, "enter the client first"
        session = self._urgent if kinds.LEASES.plural in path.split("/") else self._short
        headers = await self._headers(headers)
        started = time.monotonic()
        try:
            async with session.request(
                method,
                self.endpoint.url + path,
                params=query,
                data=data,
                headers=headers,
                timeout=_TIMEOUT,
                allow_redirects=False,
                server_hostname=self.endpoint.server_name,
            ) as response:
                payload = await answers.read(response, answers.LIMIT)
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            self._requests.unanswered(method)
            raise answers.unreachable(self.name, error) from error

        self._requests.answered(method, response.status, time.monotonic() - started)
        if response.status >= 300:
            raise answers.error_of(response, payload)

        return payload

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float | None,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A long answer, to be read as it comes.

        `silence` is how many seconds without a byte mean that the other side is gone.
        """
        assert self._long is not None, "enter the client first"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence)
        headers = await self._headers({"Accept": accept})
        try:
            response = await self._long.request(
                method,
                self.endpoint.url + path,
                params=query,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self.endpoint.server_name,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            raise answers.unreachable(self.name, error) from error

        try:
            if response.status >= 300:
                raise answers.error_of(response, await answers.read(response, answers.ERROR_LIMIT))

            yield response
        finally:
            await answers.hang_up(response)

    async def authorization(self) -> str | None:
        """The Authorization header for requests that are made elsewhere (the kubelet tunnel)."""
        return await self.endpoint.authorization()

    async def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        if value := await self.endpoint.authorization():
            headers["Authorization"] = value

        return headers

    async def _object(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        answer = await self.request(
            method, path, query=query, body=body, content_type=content_type, accept=accept
        )
        return answer if isinstance(answer, dict) else {}
