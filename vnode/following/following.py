"""Puts the parts of following together, behind the interface that the rest of the agent uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity, parent_key
from vnode.api.objects import Object
from vnode.following import missing, references
from vnode.following.claims import Claims
from vnode.following.config import FollowingConfig
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import Family, FamilyContext
from vnode.following.follower import REASON, Follower
from vnode.following.namespaces import Namespaces
from vnode.following.network_objects import NetworkObjects
from vnode.following.reference_index import ReferenceIndex
from vnode.following.references import Ref
from vnode.following.service_accounts import ServiceAccounts
from vnode.following.services import Relabel
from vnode.following.tls import TlsSecrets
from vnode.following.token_secrets import Holders, TokenSecrets
from vnode.following.tokens import Tokens
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.links import Link, Links
from vnode.runtime.supervisor import supervise

Introduced = Callable[[Object, Object, Link], Iterable[tuple[str, str]]]
"""Returns what the delegate of a pod, with that chaperon there, refers to because of overrides: the
plurals of kinds, and names."""

_KINDS: Final = {
    kind.plural: kind
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.CLAIMS, kinds.SERVICE_ACCOUNTS)
}


def families(
    context: FamilyContext,
    config: FollowingConfig,
    references: ReferenceIndex,
    *,
    relabel: Relabel,
    target_exists: Callable[[str], bool],
) -> list[Family]:
    """Return every family, in the order in which they are told of pods: a new one is listed here.

    Those that are turned off are left out, but for Services: what Admiralty did to them is undone.
    """
    network = NetworkObjects(
        context, relabel=relabel, target_exists=target_exists, active=config.services
    )
    if not config.config_maps_and_secrets:
        return [network]

    certificates = [TlsSecrets(network)] if config.services else []
    return [
        network,
        ConfigObjects(context, references, certificates),
        Claims(context, references),
        ServiceAccounts(context, references),
    ]


def _token_secrets(local: Client, families: list[Family]) -> TokenSecrets | None:
    """Return who decides about Secrets that are tokens; None if Secrets do not follow."""
    for family in families:
        if isinstance(family, ConfigObjects):
            return TokenSecrets(local, family.is_token)

    return None


def _refuse_tokens(holders: Holders, introduced: Collection[Ref]) -> None:
    """Raise ConfigError for a token that the pod itself does not have: nobody would renew it."""
    for ref in introduced:
        if ref.kind is kinds.SECRETS and ref.name in holders:
            raise ConfigError(
                f"{ref} is the token of a service account, which an override policy cannot give a "
                "pod: have the pod itself refer to it"
            )


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
        complete: Callable[[str], bool],
        enabled_namespaces: EnabledNamespaces,
        events: EventRecorder,
        clock: Clock,
        introduced: Introduced = lambda _pod, _chaperon, _link: (),
        find_pod: Callable[[str], Object | None] = lambda _key: None,
    ) -> None:
        self._introduced = introduced
        self._overrides_seen = False  # on some chaperon; most sources have none
        self._find_pod = find_pod
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
        context = FamilyContext(
            local, links, identity, follower.wake, follower.wake_kind, follower.copies_of, clock
        )
        self._families = families(
            context, config, self._references, relabel=relabel, target_exists=target_exists
        )
        self._token_secrets = _token_secrets(local, self._families)
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

    async def _holders(self, pod: Object) -> tuple[Holders, str]:
        found = self._token_secrets
        return await found.holders(pod) if found else ({}, "")

    async def run(self) -> None:
        """Follow until cancelled."""
        self._links.subscribe(self._on_link, lambda _link: None)
        async with supervise() as tasks:
            for family in self._families:
                if not family.active:  # the follower opens the others
                    await family.open(tasks)

            tasks.start(self._tokens.run(), "tokens")
            await self._follower.run()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Note that a proxy pod came, changed or went; a subscriber of informers."""
        if self._overrides_seen and new is not None and old is None:
            for link in self._links.covering(objects.namespace(new)):
                chaperon = link.candidate(objects.key(new), objects.uid(new))
                if chaperon is not None and keys.OVERRIDES in objects.annotations(chaperon):
                    self._take_up(new, link, chaperon)

        self._tokens.on_pod(old, new)
        for family in self._families:
            if family.active:
                family.on_pod(old, new)

    async def ensure(self, pod: Object, link: Link) -> tuple[str, Collection[str]]:
        """Have a target hold what a pod refers to, before it gets a candidate of the pod.

        Returns a message for the pod's user, "" if there is none, and the names of the Secrets for
        which the target has tokens. Raises VnodeError if the target must not have the pod now. A
        pod that refers to nothing costs no request. The pod may be as overrides have it there.
        """
        if link.is_self:
            return "", ()

        wanted = self._config.config_maps_and_secrets
        needed = self._references.announce(pod, link.node_name) if wanted else []
        introduced = self._introduce(pod, link, (key.ref for key in needed))
        try:
            await self._namespaces.ensure(objects.namespace(pod), link)
            message = await self._follower.ensure(needed) if needed else ""
            holders: Holders = {}
            if needed and self._token_secrets:
                holders, note = await self._token_secrets.admit(pod, link)
                _refuse_tokens(holders, introduced)
                message = "; ".join(filter(None, (message, note)))

            await self._tokens.ensure(pod, link, holders)
        except ConfigError as error:
            self._warn(pod, str(error))
            raise

        if message:
            self._warn(pod, message)

        self._report_missing(pod)
        return message, tuple(holders)

    def _report_missing(self, pod: Object) -> None:
        """Record what the pod refers to and this cluster lacks: the pod goes without."""
        for family in self._families:
            if isinstance(family, ConfigObjects):
                for reason, text in missing.missing_references(pod, family.is_absent):
                    self._events.event(about(pod), WARNING, reason, text)

    def _introduce(self, pod: Object, link: Link, needed: Iterable[Ref]) -> set[Ref]:
        """Record, and return, what is needed there and not by the pod itself."""
        proxy = self._find_pod(objects.key(pod))
        if proxy is None or objects.uid(proxy) != objects.uid(pod):
            return set()

        refs = set(needed) - set(references.of(proxy))
        self._references.introduce(proxy, link.node_name, refs)
        return refs

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

    def _on_link(self, link: Link) -> None:
        def on_chaperon(old: Object | None, new: Object | None) -> None:
            if new is not None:
                self._on_chaperon(link, old, new)
            elif old is not None:
                # By UID: the chaperon of an earlier pod of the name releases nothing of this one.
                pod, uid = parent_key(old), objects.labels(old).get(keys.PARENT_UID, "")
                if not link.is_candidate(old, pod, uid):
                    return

                self._references.release(pod, uid, link.node_name)
                self._tokens.release(pod, uid, link.node_name)
                proxy = self._find_pod(pod)
                if proxy is not None and objects.uid(proxy) == uid:
                    self._references.introduce(proxy, link.node_name, ())

        link.chaperons.subscribe(on_chaperon)

    def _on_chaperon(self, link: Link, old: Object | None, chaperon: Object) -> None:
        """Note what a delegate refers to by overrides, as its chaperon has it from whoever made it.

        A chaperon that comes before its pod is looked at again when the pod does.
        """
        record = objects.annotations(chaperon).get(keys.OVERRIDES)
        if record is None or (old and objects.annotations(old).get(keys.OVERRIDES) == record):
            return

        self._overrides_seen = True
        proxy = self._find_pod(parent_key(chaperon))
        if proxy is not None:
            self._take_up(proxy, link, chaperon)

    def _take_up(self, proxy: Object, link: Link, chaperon: Object) -> None:
        if not link.is_candidate(chaperon, objects.key(proxy), objects.uid(proxy)):
            return

        namespace = objects.namespace(proxy)
        refs = [
            Ref(_KINDS[plural], namespace, name)
            for plural, name in self._introduced(proxy, chaperon, link)
            if plural in _KINDS
        ]
        self._references.introduce(proxy, link.node_name, refs)
