"""Serves the candidate scheduler's extender: a held `bind` is a reservation.

The upstream kube-scheduler has found a node for a delegate, has set its resources aside, and asks
us to bind it. We mark the chaperon, wait until the source allows it (`reservations`), and only then
bind. While we wait, the scheduler keeps the place; if we refuse, it takes the pod back.

Only candidates that we know are bound: pods that a PodChaperon of this cluster controls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from cryptography import x509

from vnode.api import documents, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import urgency
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.reservations import CandidateGone, Refusal, Reservations
from vnode.pods.target import preemption_request
from vnode.pods.target.preempting import Preempting
from vnode.runtime import serving
from vnode.runtime.applications import application
from vnode.runtime.certs import issued
from vnode.telemetry import audit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BindRequest:
    """An ExtenderBindingArgs of k8s.io/kube-scheduler/extender/v1."""

    namespace: str
    name: str
    uid: str
    node: str


def parse(payload: bytes) -> BindRequest | None:
    """Return the request, None if it is none. Go writes these keys in either case."""
    try:
        raw: Any = documents.decode(payload)
    except documents.NO_JSON:
        return None

    if not isinstance(raw, dict):
        return None

    fields = {str(key).lower(): str(value) for key, value in raw.items()}
    try:
        wanted = BindRequest(
            fields["podnamespace"], fields["podname"], fields["poduid"], fields["node"]
        )
    except KeyError:
        return None

    named = names.LABEL.fullmatch(wanted.namespace) and names.SUBDOMAIN.fullmatch(wanted.name)
    return wanted if named else None


class Extender:
    """Answers `bind` and `preempt`. Every replica serves it.

    `is_trusted` tells whether a client certificate is of the agents' present CA.
    """

    def __init__(
        self,
        client: Client,
        reservations: Reservations,
        delegates: Informer,
        is_trusted: Callable[[x509.Certificate], bool],
        clock: Clock,
    ) -> None:
        self._client = client
        self._reservations = reservations
        self._delegates = delegates
        self._is_trusted = is_trusted
        self._clock = clock
        self._preempting = Preempting(client, reservations.chaperons, clock)

    def app(self) -> web.Application:
        """Return the application, which only the candidate scheduler may call."""
        app = application(
            [serving.only_client(issued.CLIENT, self._is_trusted)],
            client_max_size=preemption_request.MOST_BYTES,
        )
        app.add_routes([web.post("/bind", self.handle), web.post("/preempt", self.preempt)])
        return app

    async def handle(self, request: web.Request) -> web.Response:
        """Bind, or return the reason in the `error` of an ExtenderBindingResult."""
        wanted = parse(await request.read())
        if wanted is None:
            return web.json_response({"error": "not an ExtenderBindingArgs"}, status=400)

        try:
            await self._bind(wanted)
        except CandidateGone as error:
            await self._discard(wanted)
            return web.json_response({"error": str(error)})
        except VnodeError as error:
            log.info("not bound: %s/%s: %s", wanted.namespace, wanted.name, error)
            return web.json_response({"error": str(error)})

        return web.json_response({})

    async def preempt(self, request: web.Request) -> web.Response:
        """Return, as an ExtenderPreemptionResult, on which nodes a delegate may preempt others."""
        wanted = await preemption_request.parse(await request.read(), self._clock)
        if wanted is None:
            return web.json_response({"error": "not an ExtenderPreemptionArgs"}, status=400)

        with urgency.awaited():
            return web.json_response(await self._preempting.answer(wanted))

    async def _bind(self, wanted: BindRequest) -> None:
        with urgency.awaited():  # by the scheduler, which holds the place meanwhile
            await self._bind_allowed(await self._delegate(wanted), wanted)

    async def _bind_allowed(self, pod: Object, wanted: BindRequest) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": wanted.name, "uid": wanted.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": wanted.node},
        }
        with audit.on_behalf_of(audit.of_delegate(pod)):
            await self._reservations.allowed(pod)
            await self._client.create(
                kinds.PODS,
                binding,
                wanted.namespace,
                name=wanted.name,
                subresource="binding",
            )

    async def _discard(self, wanted: BindRequest) -> None:
        """Delete the delegate of a candidate that is gone, before the scheduler tries it again.

        Only if the API server says so itself: this replica may not have seen the chaperon yet. It
        is owned by the chaperon, so that it would be deleted soon anyway.
        """
        try:
            pod = await self._delegate(wanted)
            if await self._reservations.is_gone(pod):
                with audit.on_behalf_of(audit.of_delegate(pod)):
                    await self._client.discard(kinds.PODS, pod)
        except VnodeError as error:
            log.info("not deleted: %s/%s: %s", wanted.namespace, wanted.name, error)

    async def _delegate(self, wanted: BindRequest) -> Object:
        """Return the pod to be bound; one that is too new for the informer is fetched."""
        key = objects.join_key(wanted.namespace, wanted.name)
        pod = self._delegates.store.get(key)
        if pod is None or objects.uid(pod) != wanted.uid:
            pod = await self._client.get(kinds.PODS, wanted.name, wanted.namespace)

        if objects.uid(pod) != wanted.uid:
            raise Refusal(f"{key} was deleted, and another pod has its name")

        return pod
