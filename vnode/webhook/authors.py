"""Records, at their admission, who creates AuthTokenRequests, and lets nobody change that.

At a creation the annotations of `vnode.api.authors` are overwritten with who asks; at an update
they are put back. Who may not have the request carried out is told at once; the agent that carries
it out asks again.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from vnode.api import documents, keys, objects, webhook_paths
from vnode.api.authors import Author, RecordedAuthors
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.objects import Object
from vnode.webhook.patch import Patch
from vnode.webhook.server import routes

_VALUES: Final = 50_000  # in a review; the largest request has half of that
_RECORDED: Final = (keys.AUTHOR, keys.AUTHOR_SIGNATURE)

Refusal = Callable[[Object, Author], Awaitable[str]]

log = logging.getLogger(__name__)


class _AuthoredMetadata(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    annotations: dict[str, str] | None = None


class _Authored(msgspec.Struct):
    metadata: _AuthoredMetadata


class _AuthorRequest(msgspec.Struct, rename="camel"):
    uid: str
    user_info: Author
    operation: str
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _AuthorReview(msgspec.Struct, rename="camel"):
    request: _AuthorRequest
    api_version: str = "admission.k8s.io/v1"


_decoder: Final = msgspec.json.Decoder(_AuthorReview)


class AuthorWebhook:
    """Answers admission reviews of AuthTokenRequests.

    `refusal` returns why such a request by such an author would not be carried out, "" if it would.
    """

    def __init__(self, authors: RecordedAuthors, refusal: Refusal) -> None:
        self._authors = authors
        self._refusal = refusal

    def routes(self) -> list[web.RouteDef]:
        """Return the routes, to be served beside those of the other webhook."""
        return routes(webhook_paths.AUTHORS, self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one review; 400 if the body is none."""
        try:
            answer = await self.review(await request.read())
        except ConfigError as error:
            return web.Response(status=400, text=str(error))

        return web.Response(body=answer, content_type="application/json")

    async def review(self, body: bytes) -> bytes:
        """Return the answer to a review; ConfigError if the body is none."""
        review = _parse(body)
        response = {"uid": review.request.uid, **await self._decide(review.request)}
        return msgspec.json.encode(
            {"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response}
        )

    async def _decide(self, request: _AuthorRequest) -> Object:
        obj = request.object or {}
        if request.operation == "UPDATE":
            kept = objects.annotations(request.old_object or {})
            return _allowed(obj, {key: kept.get(key) for key in _RECORDED})

        if request.operation != "CREATE":
            return {"allowed": True}

        try:
            metadata = {**objects.metadata(obj), "namespace": request.namespace}
            refusal = await self._refusal({**obj, "metadata": metadata}, request.user_info)
        except VnodeError as error:
            return _refused(503, "ServiceUnavailable", f"cannot tell who may do that: {error}")

        if refusal:
            log.info("refused an AuthTokenRequest in namespace %s", request.namespace)
            return _refused(403, "Forbidden", refusal)

        return _allowed(obj, self._authors.annotations(obj, request.namespace, request.user_info))


def _parse(body: bytes) -> _AuthorReview:
    if not documents.has_at_most(_VALUES, body):
        raise ConfigError(f"the AdmissionReview has more than {_VALUES} values")

    try:
        review = _decoder.decode(body)
        for each in (review.request.object, review.request.old_object):
            if each is not None:
                msgspec.convert(each, _Authored)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ConfigError(f"not an AdmissionReview: {error}") from error

    return review


def _allowed(obj: Object, annotations: dict[str, Any]) -> Object:
    patch = Patch(obj)
    for key, value in annotations.items():
        if value is None:
            patch.remove("metadata", "annotations", key)
        else:
            patch.set(value, "metadata", "annotations", key)

    if not patch.operations:
        return {"allowed": True}

    encoded = base64.b64encode(msgspec.json.encode(patch.operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _refused(code: int, reason: str, message: str) -> Object:
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return {"allowed": False, "status": {"apiVersion": "v1", "kind": "Status", **status}}
