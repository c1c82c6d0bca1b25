"""Sends bound proxy pods to their targets that had no candidate before they were bound.

Somebody else has bound them, or they asked for no reservation. So the chaperon may run at once, and
what the target or the source refuses can only be told: the pod stays where it is.
"""

from __future__ import annotations

from typing import Final

from vnode.api import cures, kinds, objects, route
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ConfigError, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods import chains, chaperons
from vnode.pods.source import feedback, proxy_state
from vnode.pods.source.candidate_requests import is_not_granted, name_conflict
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.status_writer import StatusWriter
from vnode.pods.source.stray_pods import StrayPods
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link

_REFUSED: Final = 30.0  # seconds until a chaperon that the target refused is tried again


def is_unreserved(proxy: Object) -> bool:
    """Return whether a bound pod had no candidate, so that a chaperon has yet to be created."""
    had_none = chaperons.skips_reservation(proxy) or proxy_state.was_created_bound(proxy)
    return had_none and not feedback.has_started(proxy)


class UnreservedPods:
    """Creates their chaperons."""

    def __init__(
        self,
        client: Client,
        status_writer: StatusWriter,
        factory: ChaperonFactory,
        enabled_namespaces: EnabledNamespaces,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._status_writer = status_writer
        self._factory = factory
        self._namespaces = enabled_namespaces
        self._events = events
        self._strays = StrayPods(client, events, clock)

    async def turn_away(self, proxy: Object, why: str) -> None:
        """Delete a pod that is not sent, if it came by chance; else record an Event on it."""
        if not await self._strays.send_away(proxy):
            self._refuse(proxy, why)

    def _refuse(self, proxy: Object, why: str) -> None:
        self._events.event(about(proxy), WARNING, "DelegateRefused", why)

    async def send(self, proxy: Object, link: Link) -> float | None:
        """Create the chaperon of a pod; return when to try again, if the target refused it.

        AlreadyExists if our informer does not show the one that there is.
        """
        if refusal := self._namespaces.refusal(objects.namespace(proxy)):
            await self.turn_away(proxy, refusal)
            return None

        live = await self._client.get(kinds.PODS, objects.name(proxy), objects.namespace(proxy))
        if objects.uid(live) != objects.uid(proxy) or objects.is_terminating(live):
            return None

        try:
            chaperon, _note = await self._factory.build(live, link, allowed=True)
            await link.client.create(kinds.POD_CHAPERONS, chaperon)
        except AlreadyExists:
            if not (problem := await name_conflict(live, link)):
                raise

            await self._report_refusal(live, f"target {link.target}: {problem}")
            return _REFUSED
        except (Denied, Invalid, NotFound, ConfigError) as error:
            if isinstance(error, ConfigError):
                message = f"the pod is not sent to target {link.target}: {error}"
            else:
                message = f"target {link.target} refused the pod: {error.message}"
                if is_not_granted(error, link):
                    message += f"; {cures.grant(objects.namespace(proxy))}"

            await self._report_refusal(live, message)
            return _REFUSED

        return None

    async def _report_refusal(self, pod: Object, message: str) -> None:
        """Record the refusal; the source of a pod that came from another cluster hears it, too."""
        self._refuse(pod, message)
        if route.is_delegate(pod) and objects.status(pod).get("message") != message:
            await self._status_writer.patch(
                pod, chains.not_sent_on(pod, message), subresource="status"
            )
