"""Following, put together: what the rest of the agent is given of it."""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity, parent_key
from vnode.api.objects import Object
from vnode.following import config, foreign_tokens
from vnode.following.claims import Claims
from vnode.following.config_objects import ConfigObjects
from vnode.following.follower import REASON, Follower
from vnode.following.namespaces import Namespaces
from vnode.following.network_objects import NetworkObjects
from vnode.following.reference_index import ReferenceIndex
from vnode.following.services import Relabel
from vnode.following.tls import TlsSecrets
from vnode.following.tokens import Tokens
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.runtime.links import Link, Links
from vnode.runtime.supervisor import supervise


class Following:
    """Runs in the leader. `see` hears of all proxy pods, `bring` is asked before a candidate is."""

    def __init__(
        self,
        local: Client,
        links: Links,
        identity: Identity,
        wanted: config.FollowingConfig,
        *,
        relabel: Relabel,
        target_exists: Callable[[str], bool],
        complete: Callable[[str], bool],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._local = local
        self._wanted = wanted
        self._events = events
        self._links = links
        self._follower = Follower(links, identity, complete=complete, events=events, clock=clock)
        self._namespaces = Namespaces(identity, clock)
        self._tokens = Tokens(local, links, identity, complete=complete, events=events, clock=clock)
        self._references = ReferenceIndex(self._follower.wake, clock)
        self._network_objects = NetworkObjects(
            local,
            links,
            identity,
            relabel=relabel,
            wake=self._follower.wake,
            copies_of=self._follower.copies_of,
            target_exists=target_exists,
            active=wanted.services,
        )
        others = [TlsSecrets(self._network_objects)] if wanted.services else []
        self._config_objects = ConfigObjects(local, links, identity, self._references, others)
        if wanted.config_maps_and_secrets:
            self._follower.carry(self._config_objects)
            self._follower.carry(
                Claims(local, links, identity, self._references, self._follower.look)
            )

        if wanted.services:
            self._follower.carry(self._network_objects)

    async def run(self) -> None:
        """Follow until cancelled."""
        self._links.subscribe(self._on_link, lambda _link: None)
        async with supervise() as tasks:
            if not self._wanted.services:  # else the follower opens it
                await self._network_objects.open(tasks)

            tasks.start(self._tokens.run(), "tokens")
            await self._follower.run()

    def see(self, old: Object | None, new: Object | None) -> None:
        """A proxy pod came, changed or went; as an informer calls its subscribers."""
        self._tokens.see(old, new)
        if self._wanted.services:
            self._network_objects.see(old, new)

        if self._wanted.config_maps_and_secrets:
            self._config_objects.see(old, new)

    async def bring(self, pod: Object, link: Link) -> str:
        """See that a target has what a pod refers to, before it has a candidate of the pod.

        The answer, if not "", is for the pod's user. Raises VnodeError if the target must not have
        the pod now. A pod that refers to nothing costs nothing.
        """
        if link.is_self:
            return ""

        wanted = self._wanted.config_maps_and_secrets
        claimed = self._references.claim(pod, link.node_name) if wanted else []
        try:
            await self._namespaces.ensure(objects.namespace(pod), link)
            if wanted:
                await foreign_tokens.refuse(pod, self._local, link)

            await self._tokens.bring(pod, link)
            note = await self._follower.bring(claimed) if claimed else ""
        except ConfigError as error:
            self._say(pod, str(error))
            raise

        if note:
            self._say(pod, note)

        return note

    def renew(self, pod: Object, link: Link) -> None:
        """A pending pod still has a candidate there: have what it refers to looked at again.

        Whoever led before may have made the candidate, and the Target may ask for more since.
        """
        if link.is_self:
            return

        self._tokens.renew(pod, link)
        if self._wanted.config_maps_and_secrets:
            for key in self._references.claim(pod, link.node_name):
                self._follower.wake(key)

    def _say(self, pod: Object, text: str) -> None:
        self._events.event(about(pod), WARNING, REASON, text)

    def _on_link(self, link: Link) -> None:
        """Without its candidate, a pending pod needs nothing in a target."""

        def on_chaperon(old: Object | None, new: Object | None) -> None:
            if old is not None and new is None:
                # That of an earlier pod of the name says nothing about the present one.
                pod, uid = parent_key(old), objects.labels(old).get(keys.PARENT_UID, "")
                self._references.release(pod, uid, link.node_name)
                self._tokens.release(pod, uid, link.node_name)

        link.chaperons.subscribe(on_chaperon)
