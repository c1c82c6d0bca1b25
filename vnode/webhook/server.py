"""Serves the mutating webhook: an AdmissionReview in, an AdmissionReview out.

Every replica serves it. It asks two functions about the cluster: whether the namespace is elected,
and which targets cover it. Whatever the body holds, the answer is a review or a 400; the content of
pods is never logged.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from vnode.api import documents, keys, objects, renaming, spelling, webhook_paths
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.api.token_bucket import TokenBucket
from vnode.planning.failover import Failover
from vnode.planning.policy import NO_POLICIES, Policies
from vnode.runtime.applications import application
from vnode.runtime.connections import ConnectionLimits
from vnode.telemetry import metrics
from vnode.webhook import election, mutate, own_pods

BODY_LIMIT: Final = 8 * 1024 * 1024  # bytes; the API server takes no object over 3 MiB
VALUES: Final = 50_000
"""In a review, since it is decoded in one piece; a large pod has a thousand."""
LIMITS: Final = ConnectionLimits(
    seconds=10.0,  # as long as an API server waits
    idle=100.0,  # longer than an API server keeps a connection
    each=BODY_LIMIT + 256 * 1024,
    total=8 * BODY_LIMIT,
)

_TOLD: Final = (0.2, 20)  # rejections that are logged: a second over time, and at once

NamespaceAnnotations = Callable[[str], Awaitable[Mapping[str, str] | None]]
Finalizers = Callable[[str], Sequence[str]]

log = logging.getLogger(__name__)


def routes(
    path: str, handler: Callable[[web.Request], Awaitable[web.Response]]
) -> list[web.RouteDef]:
    """Return the routes of one path, with a secret and without: the server knows which count."""
    return [web.post(path, handler), web.post(path + "/{secret}", handler)]


class MalformedReview(VnodeError):
    """The body is no AdmissionReview of a pod."""


class _Request(msgspec.Struct):
    uid: str
    object: dict[str, Any] | None = None
    namespace: str = ""
    operation: str = "CREATE"
    name: str = ""


class _Review(msgspec.Struct, rename="camel"):
    request: _Request
    api_version: str = "admission.k8s.io/v1"


_decoder: Final = msgspec.json.Decoder(_Review)


class Webhook:
    """Answers admission reviews.

    `namespace_annotations` returns a namespace's annotations, None if there is no such namespace;
    `finalizers` those of the Targets and ClusterTargets that cover a namespace. `policies` are the
    placement policies in force. `beside` are routes that are served beside these. Outside of the
    namespaces that the agent `covers` every pod is an ordinary one.
    """

    def __init__(
        self,
        namespace_annotations: NamespaceAnnotations,
        finalizers: Finalizers,
        manifests: SavedManifests,
        policies: Policies = NO_POLICIES,
        beside: Iterable[web.RouteDef] = (),
        covers: Callable[[str], bool] = lambda _namespace: True,
        clock: Clock | None = None,
    ) -> None:
        self._namespace_annotations = namespace_annotations
        self._finalizers = finalizers
        self._manifests = manifests
        self._policies = policies
        self._beside = tuple(beside)
        self._covers = covers
        self._clock: Clock = clock or SystemClock()
        self._told = TokenBucket(*_TOLD)

    def app(self) -> web.Application:
        """Return the application to be served over TLS."""
        app = application(client_max_size=BODY_LIMIT)
        for path, handler in (
            (webhook_paths.PODS, self.handle),
            (webhook_paths.OWN_PODS, self.handle_own),
        ):
            app.add_routes(routes(path, handler))

        app.add_routes(self._beside)

        return app

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one review; 400 if the body is none, 413 if it is too large."""
        return await self._handle(request, elects=True)

    async def handle_own(self, request: web.Request) -> web.Response:
        """Answer one review of a pod whose namespace did not opt in."""
        return await self._handle(request, elects=False)

    async def _handle(self, request: web.Request, *, elects: bool) -> web.Response:
        try:
            answer = await self.review(await request.read(), elects=elects)
        except MalformedReview as error:
            return web.Response(status=400, text=str(error))

        return web.Response(body=answer, content_type="application/json")

    async def review(self, body: bytes, *, elects: bool = True) -> bytes:
        """Return the answer to a review; raises MalformedReview if the body is none."""
        review = _parse(body)
        try:
            decision = await self._decide(review.request, elects=elects)
        except RecursionError as error:
            raise MalformedReview("nested too deeply") from error

        response = {"uid": review.request.uid, **decision}
        return msgspec.json.encode(
            {"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response}
        )

    async def _decide(self, request: _Request, *, elects: bool) -> Object:
        pod = request.object or {}
        if request.operation != "CREATE" or (elects and election.is_left_alone(pod)):
            metrics.ADMISSIONS.labels("ignored").inc()
            return {"allowed": True}

        try:
            if not elects or not await self._elected(pod, request.namespace):
                return _of_own_pod(pod, may_go=elects)

            patch = mutate.proxy_patch(
                pod,
                request.namespace,
                self._finalizers(request.namespace),
                self._manifests,
                failover=self._failover(pod, request.namespace),
            )
            refusal = self._manifests.refusal(pod, request.namespace)
            warnings = [*spelling.warnings(pod, elected=True), *renaming.warnings(pod)]
            warnings += [f"it runs nowhere: {refusal}"] if refusal else []
        except ConfigError as error:
            return self._rejection(request, 400, "BadRequest", str(error))
        except VnodeError as error:
            text = f"cannot tell whether the pod is to be a proxy: {error}; try again"
            return self._rejection(request, 503, "ServiceUnavailable", text)

        metrics.ADMISSIONS.labels("mutated").inc()
        return _with_warnings(_with_patch(patch), warnings)

    def _rejection(self, request: _Request, code: int, reason: str, message: str) -> Object:
        metrics.ADMISSIONS.labels("rejected").inc()
        if self._told.take(self._clock.monotonic()):  # a user may create what is refused on and on
            name = request.name or "(no name)"
            log.warning("rejected pod %s/%s: %s", request.namespace, name, reason)

        return {
            "allowed": False,
            "status": {
                "apiVersion": "v1",
                "kind": "Status",
                "status": "Failure",
                "code": code,
                "reason": reason,
                "message": message,
            },
        }

    def _failover(self, pod: Object, namespace: str) -> Failover | None:
        if not self._policies:
            return None

        metadata = {**objects.metadata(pod), "namespace": namespace}
        policy = self._policies.of({**pod, "metadata": metadata})
        return policy.failover if policy is not None else None

    async def _elected(self, pod: Object, namespace: str) -> bool:
        if election.is_exempt(pod) or not self._covers(namespace):
            return False

        if election.elects_itself(pod):
            return True

        return keys.ELECT in (await self._namespace_annotations(namespace) or {})


def _parse(body: bytes) -> _Review:
    if not documents.has_at_most(VALUES, body):
        raise MalformedReview(f"the AdmissionReview has more than {VALUES} values")

    try:
        review = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise MalformedReview(f"not an AdmissionReview: {error}") from error

    if review.request.operation == "CREATE" and not mutate.is_pod(review.request.object):
        raise MalformedReview("not an AdmissionReview of a pod")

    return review


def _with_patch(patch: list[Object]) -> Object:
    if not patch:
        return {"allowed": True}

    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _of_own_pod(pod: Object, *, may_go: bool) -> Object:
    """Decide on a pod that is no proxy."""
    patch = own_pods.patch(pod, may_go=may_go)
    metrics.ADMISSIONS.labels("steered" if patch else "ignored").inc()
    return _with_warnings(
        _with_patch(patch), spelling.warnings(pod, elected=False) if may_go else ()
    )


def _with_warnings(response: Object, warnings: Iterable[str]) -> Object:
    """Add warnings, which kubectl prints, to a response."""
    collected = list(warnings)
    return {**response, "warnings": collected} if collected else response
