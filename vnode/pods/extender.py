"""The candidate scheduler's extender: a held `bind` is a reservation.

The upstream kube-scheduler has found a node for a delegate, has set its resources aside, and asks
us to bind it. We say so on the chaperon (is-reserved), wait until the source allows it, and only
then bind. While we wait, the scheduler keeps the place; if we refuse, it takes the pod back.

Only candidates that we know are bound: pods that a PodChaperon of this cluster controls.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

PATIENCE: Final = 30.0  # seconds that a reservation is held, as Admiralty's PreBind has it

_NEWCOMERS: Final = 16  # reservations that are being written at any moment

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BindRequest:
    """An ExtenderBindingArgs of k8s.io/kube-scheduler/extender/v1."""

    namespace: str
    name: str
    uid: str
    node: str


def parse(payload: bytes) -> BindRequest | None:
    """The request, or None if it is not one. Go writes these keys in either case."""
    try:
        raw: Any = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return None

    if not isinstance(raw, dict):
        return None

    fields = {str(key).lower(): str(value) for key, value in raw.items()}
    try:
        return BindRequest(
            fields["podnamespace"], fields["podname"], fields["poduid"], fields["node"]
        )
    except KeyError:
        return None


class Refusal(VnodeError):
    """Why a candidate is not bound; the scheduler tries it again."""


class Extender:
    """Answers `bind`. Every replica serves it; the chaperons are the only state."""

    def __init__(
        self,
        client: Client,
        chaperons: Informer,
        delegates: Informer,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._client = client
        self._chaperons = chaperons
        self._delegates = delegates
        self._patience = patience
        # Few at once: whoever is allowed must not wait behind a burst of newcomers.
        self._reserving = asyncio.Semaphore(_NEWCOMERS)
        self._waiting: dict[str, set[asyncio.Event]] = {}  # by chaperon key; no empty sets
        chaperons.subscribe(self._on_chaperon)

    def routes(self) -> list[web.RouteDef]:
        """Where the scheduler calls."""
        return [web.post("/bind", self.handle)]

    async def handle(self, request: web.Request) -> web.Response:
        """Bind, or say why not in the `error` of an ExtenderBindingResult."""
        wanted = parse(await request.read())
        if wanted is None:
            return web.json_response({"error": "not an ExtenderBindingArgs"}, status=400)

        try:
            await self._bind(wanted)
        except VnodeError as error:
            log.info("not bound: %s/%s: %s", wanted.namespace, wanted.name, error)
            return web.json_response({"error": str(error)})

        return web.json_response({})

    async def _bind(self, wanted: BindRequest) -> None:
        key = objects.join_key(wanted.namespace, wanted.name)
        await self._check(key, wanted.uid)
        await self._allowed(key)
        await self._client.create(
            kinds.PODS,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": wanted.name, "uid": wanted.uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": wanted.node},
            },
            wanted.namespace,
            name=wanted.name,
            subresource="binding",
        )

    async def _check(self, key: str, uid: str) -> None:
        """Refuse pods that are not candidates; a pod too new for the informer is fetched."""
        pod = self._delegates.store.get(key)
        if pod is None or objects.uid(pod) != uid:
            namespace, name = objects.split_key(key)
            pod = await self._client.get(kinds.PODS, name, namespace)

        owner = objects.controller_uid(pod)
        if objects.uid(pod) != uid or not owner or owner != objects.uid(self._live(key)):
            raise Refusal(f"{key} is not a candidate of this cluster: no PodChaperon controls it")

    def _live(self, key: str) -> Object:
        chaperon = self._chaperons.store.get(key)
        if chaperon is None or objects.is_terminating(chaperon):
            raise Refusal(f"the PodChaperon of {key} is gone")

        return chaperon

    async def _allowed(self, key: str) -> None:
        """Return once the source has allowed the candidate; Refusal if it does not in time.

        As long as we wait, the candidate is reserved, whatever was said of it before.
        """
        event = asyncio.Event()
        self._waiting.setdefault(key, set()).add(event)
        try:
            async with asyncio.timeout(self._patience):
                while keys.IS_ALLOWED not in (notes := objects.annotations(self._live(key))):
                    event.clear()
                    if keys.IS_RESERVED not in notes:
                        async with self._reserving:
                            await self._annotate(self._live(key), {keys.IS_RESERVED: "true"})

                    await event.wait()
        except TimeoutError:
            await self._annotate(self._live(key), {keys.IS_RESERVED: None})
            raise Refusal(f"the source did not allow {key} within {self._patience:.0f} s") from None
        finally:
            self._waiting[key].discard(event)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _annotate(self, chaperon: Object, notes: dict[str, str | None]) -> None:
        metadata = {
            "uid": objects.uid(chaperon),
            "annotations": notes,
            # Emptied, so that the API server need not track the fields of each later write.
            "managedFields": [{}],
        }
        body = {"metadata": metadata}
        try:
            await self._client.patch(
                kinds.POD_CHAPERONS, objects.name(chaperon), body, objects.namespace(chaperon)
            )
        except (NotFound, Conflict) as error:
            raise Refusal(f"the PodChaperon of {objects.key(chaperon)} is gone") from error

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        for event in self._waiting.get(objects.key(new or old or {}), ()):
            event.set()
