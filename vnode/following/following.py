"""Puts the parts of following together, behind the interface that the rest of the agent uses."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity, parent_key
from vnode.api.objects import Object
from vnode.following import missing, references
from vnode.following.claims import Claims
from vnode.following.config import FollowingConfig
from vnode.following.config_objects import ConfigObjects
from vnode.following.device_claims import DeviceClaims
from vnode.following.family import Family, FamilyContext
from vnode.following.first_pods import FirstPods, NodeNamespace
from vnode.following.follower import REASON, Follower
from vnode.following.introduced import Introduced, IntroducedReferences, refuse_tokens
from vnode.following.namespaces import Namespaces
from vnode.following.network_objects import NetworkObjects
from vnode.following.network_policies import NetworkPolicies
from vnode.following.own_delegates import OwnDelegates
from vnode.following.reference_index import ReferenceIndex
from vnode.following.service_accounts import ServiceAccounts
from vnode.following.services import Relabel
from vnode.following.stale_objects import SLICE
from vnode.following.tls import TlsSecrets
from vnode.following.token_secrets import Holders, TokenSecrets
from vnode.following.tokens import Tokens
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise


def families(
    context: FamilyContext,
    config: FollowingConfig,
    references: ReferenceIndex,
    *,
    relabel: Relabel,
    target_exists: Callable[[str], bool],
    is_global: Callable[[str], bool],
) -> list[Family]:
    """Return every family, in the order in which they are told of pods: a new one is listed here.

    Those that are turned off are left out, but for Services: what Admiralty did to them is undone.
    """
    network = NetworkObjects(
        context,
        relabel=relabel,
        target_exists=target_exists,
        active=config.services,
        is_global=is_global,
    )
    policies = [NetworkPolicies(context, relabel=relabel)] if config.network_policies else []
    if not config.config_maps_and_secrets:
        return [network, *policies]

    certificates = [TlsSecrets(network)] if config.services else []
    return [
        network,
        *policies,
        ConfigObjects(context, references, certificates),
        Claims(context, references),
        DeviceClaims(context, references),
        ServiceAccounts(context, references),
    ]


def _token_secrets(local: Client, families: list[Family]) -> TokenSecrets | None:
    """Return who decides about Secrets that are tokens; None if Secrets do not follow."""
    for family in families:
        if isinstance(family, ConfigObjects):
            return TokenSecrets(local, family.is_token)

    return None


def _device_claims(families: list[Family]) -> DeviceClaims | None:
    """Return the family of device claims; None if they do not follow."""
    for family in families:
        if isinstance(family, DeviceClaims):
            return family

    return None


def _network(families: list[Family]) -> NetworkObjects | None:
    """Return the family of Services; None if they do not follow."""
    for family in families:
        if isinstance(family, NetworkObjects) and family.active:
            return family

    return None


def _policies(families: list[Family]) -> NetworkPolicies | None:
    """Return the family of NetworkPolicies; None if they do not follow."""
    for family in families:
        if isinstance(family, NetworkPolicies):
            return family

    return None


class Following:
    """Has what pods refer to follow them; runs in the leader.

    `on_pod` is called for all proxy pods, `ensure` before a candidate is created. `introduced` says
    what a delegate refers to besides, `find_pod` returns the proxy pod of a key.
    """

    def __init__(
        self,
        local: Client,
        links: Links,
        identity: Identity,
        config: FollowingConfig,
        *,
        relabel: Relabel,
        target_exists: Callable[[str], bool],
        complete: Callable[[str, str], bool],
        enabled_namespaces: EnabledNamespaces,
        events: EventRecorder,
        clock: Clock,
        introduced: Introduced = lambda _pod, _chaperon, _link: (),
        find_pod: Callable[[str], Object | None] = lambda _key: None,
    ) -> None:
        self._local = local
        self._config = config
        self._events = events
        self._links = links
        follower = Follower(
            links,
            identity,
            complete=complete,
            enabled_namespaces=enabled_namespaces,
            events=events,
            clock=clock,
        )
        self._follower = follower
        self._namespaces = Namespaces(local, identity, clock)
        self._references = ReferenceIndex(follower.wake, clock)
        self._introduced = IntroducedReferences(self._references, links, find_pod, introduced)
        self._delegates = OwnDelegates(links, identity)
        context = FamilyContext(
            *(local, links, identity, follower.wake, follower.wake_kind, follower.copies_of, clock),
            delegates=self._delegates,
        )
        self._families = families(
            *(context, config, self._references),
            relabel=relabel,
            target_exists=target_exists,
            is_global=enabled_namespaces.is_global,
        )
        self._token_secrets = _token_secrets(local, self._families)
        self._device_claims = _device_claims(self._families)
        self._tokens = Tokens(
            *(local, links, identity),
            holders=self._holders,
            complete=complete,
            events=events,
            clock=clock,
        )
        for family in self._families:
            if family.active:
                follower.carry(family)

        self._network = _network(self._families)
        self._policies = _policies(self._families)
        self._first_pods = FirstPods(self._bring_services)

    async def _bring_services(self, there: NodeNamespace) -> None:
        await self._follower.opened.wait()
        found = self._network.services_in(there) if self._network else iter(())
        while looked_at := list(itertools.islice(found, SLICE)):
            await self._follower.ensure([key for key in looked_at if key is not None])
            await asyncio.sleep(0)

    async def _holders(self, pod: Object) -> tuple[Holders, str]:
        found = self._token_secrets
        return await found.holders(pod) if found else ({}, "")

    async def run(self) -> None:
        """Follow until cancelled."""
        self._links.subscribe(self._on_link, self._on_link_gone)
        self._delegates.open()
        async with supervise() as tasks:
            for family in self._families:
                if not family.active:  # the follower opens the others
                    await family.open(tasks)

            tasks.start(self._tokens.run(), "tokens")
            await self._follower.run()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Note that a proxy pod came, changed or went; a subscriber of informers."""
        self._introduced.on_pod(old, new)
        self._tokens.on_pod(old, new)
        for family in self._families:
            if family.active:
                family.on_pod(old, new)

        if self._network and old is not None and (node := objects.node_name(old)):
            there = NodeNamespace(objects.namespace(old), node)
            if not self._network.has_pods(there):
                self._first_pods.leave(there)

    async def ensure(self, pod: Object, link: Link) -> tuple[str, Collection[str]]:
        """Have a target hold what a pod refers to, before it gets a candidate of the pod.

        Returns a message for the pod's user, "" if there is none, and the names of the Secrets for
        which the target has tokens. Raises VnodeError if the target must not have the pod now. A
        pod that refers to nothing costs no request. The pod may be as overrides have it there.
        """
        if link.is_self:
            return "", ()

        wanted = self._config.config_maps_and_secrets
        try:
            if self._device_claims is not None:
                await self._device_claims.admit(pod, link, self._introduced.find(pod))

            if wanted and (refusal := references.refusal(pod)):
                raise ConfigError(refusal)

            needed = self._references.announce(pod, link.node_name) if wanted else []
            introduced = self._introduced.announce(pod, link, (key.ref for key in needed))
            await self._namespaces.ensure(objects.namespace(pod), link)
            unprotected = await self._ensure_policies(pod, link)
            message = await self._follower.ensure(needed) if needed else ""
            message = "; ".join(filter(None, (unprotected, message)))
            holders: Holders = {}
            if needed and self._token_secrets:
                holders, note = await self._token_secrets.admit(pod, link)
                refuse_tokens(holders, introduced)
                message = "; ".join(filter(None, (message, note)))

            await self._tokens.ensure(pod, link, holders)
        except ConfigError as error:
            self._warn(pod, str(error))
            raise

        if message:
            self._warn(pod, message)

        self._report_missing(pod)
        return message, tuple(holders)

    async def _ensure_policies(self, pod: Object, link: Link) -> str:
        """Have a target hold the NetworkPolicies that select a pod; return which of them do not
        hold there, as its Target wants it. Raises VnodeError if one that should does not."""
        found = await self._policies.selecting(pod) if self._policies is not None else []
        if self._policies is None or not found:
            return ""

        if not link.options.network_policies:
            selecting = ", ".join(f"networkpolicy/{objects.name(policy)}" for policy in found[:5])
            return (
                f"{selecting} of this cluster selects this pod and is not enforced in target "
                f"{link.target.name}, as its annotation {keys.NETWORK_POLICIES} says"
            )

        needed = await self._policies.announce(pod, found, link)
        if problem := await self._follower.ensure(needed):
            raise ConfigError(problem)  # another one of that name: what it allows is not known

        return ""

    async def ensure_bound(self, pod: Object, link: Link) -> None:
        """Have a target hold what a pod needs that is bound there and is about to run.

        That is tokens that name its node, and, before the first pod of a namespace, Services: they
        are waited for some seconds at most.
        """
        await self._tokens.ensure_bound(pod, link)
        if self._network and not link.is_self:
            await self._first_pods.wait(NodeNamespace(objects.namespace(pod), link.node_name))

    def _report_missing(self, pod: Object) -> None:
        """Record what the pod refers to and this cluster lacks: the pod goes without."""
        for family in self._families:
            if isinstance(family, ConfigObjects):
                for reason, text in missing.missing_references(pod, family.is_absent):
                    self._events.event(about(pod), WARNING, reason, text)

    def renew(self, pod: Object, link: Link) -> None:
        """Reconcile what a pending pod refers to in a target that still has a candidate of it.

        An earlier leader may have created the candidate, and the Target may ask for more since.
        """
        if link.is_self:
            return

        self._tokens.renew(pod, link)
        if self._config.config_maps_and_secrets:
            for key in self._references.announce(pod, link.node_name):
                self._follower.wake(key)

    def _warn(self, pod: Object, text: str) -> None:
        self._events.event(about(pod), WARNING, REASON, text)

    def _on_link_gone(self, link: Link) -> None:
        self._first_pods.leave_node(link.node_name)

    def _on_link(self, link: Link) -> None:
        def on_chaperon(old: Object | None, new: Object | None) -> None:
            if new is not None:
                self._introduced.on_chaperon(link, old, new)
            elif old is not None:
                # By UID: the chaperon of an earlier pod of the name releases nothing of this one.
                pod, uid = parent_key(old), objects.labels(old).get(keys.PARENT_UID, "")
                if not link.is_candidate(old, pod, uid):
                    return

                self._references.release(pod, uid, link.node_name)
                self._tokens.release(pod, uid, link.node_name)
                self._introduced.release(pod, uid, link)

        link.chaperons.subscribe(on_chaperon)
