"""Keeps tokens of the source in the targets that ask for them: creates, refreshes, removes them.

One Secret a pod, with all its tokens, in the target where its containers or a candidate of it are.
Those of a candidate are replaced once its pod is bound, before it runs: then they name the node, as
those that a kubelet requests do, and policies by node go by that.
The source's own pods decide who has one: what a target shows of its Secrets can have one removed or
replaced, never given to another pod. A pod keeps what its delegate pod began with; what a Target
asks for now applies to new pods. A target that does not ask gets no tokens, and is watched only if
it has some left from the time when it did.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ConfigError, Denied, Invalid, NotFound
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.objects import Object
from vnode.api.service_tokens import LIFE
from vnode.following import copies
from vnode.following.reference_index import Need
from vnode.following.remote_tokens import Place, RemoteTokens
from vnode.following.token_requests import IssuedToken, TokenRequester, wants
from vnode.following.token_secrets import Holders
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit

_CANDIDATE_TIMEOUT: Final = 60.0  # seconds for an announced candidate to appear
_RECHECK: Final = 30.0  # seconds between checks of what only somebody else can change
_SYNC_RETRY: Final = 1.0  # seconds until the pods of a target may be known
_MIN_INTERVAL: Final = 60.0  # seconds between tokens of a pod, whatever the target does with them

log = logging.getLogger(__name__)


class _PodState(NamedTuple):
    """What counts of a pod that has not finished."""

    uid: str
    node: str  # "" while pending
    ending: bool


class _MadeTokens(NamedTuple):
    """The tokens that this leader has made last for a pod."""

    at: float  # monotonic
    refresh: datetime
    node: str  # that they name


class Tokens:
    """Keeps tokens of pods in targets; runs in the leader.

    `on_pod` is called for all proxy pods, `ensure` before a candidate is created, `ensure_bound`
    before the candidate of a bound pod may run. `holders` returns the Secrets of a pod that are
    tokens, and a message about those that are no more.
    """

    def __init__(
        self,
        local: Client,
        links: Links,
        identity: Identity,
        *,
        holders: Callable[[Object], Awaitable[tuple[Holders, str]]],
        complete: Callable[[str, str], bool],
        events: EventRecorder,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._local = local
        self._links = links
        self._identity = identity
        self._holders = holders
        self._complete = complete
        self._events = events
        self._clock = clock
        self._token_requester = TokenRequester(local, identity, clock, chance)
        self._controller: Controller[Place] = Controller(
            "tokens",
            self._reconcile,
            subject=lambda place: audit.subject(kinds.PODS, place.pod, uid=place.uid),
            workers=4,
            lane=lambda place: place.node,
            namespace=lambda place: objects.key_namespace(place.pod),
        )
        self._remote = RemoteTokens(links, identity, self._wake, self._bound, clock)
        self._pods: dict[str, _PodState] = {}  # by key; those that have not finished
        self._announced: dict[str, dict[str, float]] = {}  # UID -> node -> until (monotonic)
        self._made: dict[Place, _MadeTokens] = {}
        self._none: set[str] = set()  # UIDs of pods that want no token

    async def run(self) -> None:
        """Keep tokens fresh until cancelled."""
        async with supervise() as tasks:
            with subscription_scope():  # ends before the tasks: none is started for a later link
                self._remote.open(tasks)
                await self._controller.run()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Note that a pod came, changed or went; a subscriber of informers."""
        key = objects.key(objects.latest(old, new))
        before, after = self._pods.get(key), _pod_state(new)
        if before == after:
            return

        if after is None:
            del self._pods[key]
        else:
            self._pods[key] = after

        for state in (before, after):
            if state is not None:
                for node in {state.node, *self._announced.get(state.uid, ())}:
                    self._wake(Place(node, key, state.uid))

        if before is not None and (after is None or after.uid != before.uid):
            self._none.discard(before.uid)

    async def ensure(self, pod: Object, link: Link, holders: Holders) -> None:
        """Have the target hold a token for a pod, if both want one; VnodeError if that fails."""
        if link.options.source_api is None or link.is_self or not wants(pod, holders):
            return

        place = self._announce(pod, link)
        copy = self._remote.copy(place)
        if copy is None or self._left(place, copy) <= 0:
            await self._write(place, pod, link, holders, copy)

        self._controller.add_after(place, _CANDIDATE_TIMEOUT)

    async def ensure_bound(self, pod: Object, link: Link) -> None:
        """Have the tokens of a pod that was bound name its node, before its candidate runs.

        What an administrator has to mend is an Event on the pod, which runs with the tokens that
        its candidate has; another VnodeError is raised, and the caller tries again.
        """
        place = Place(link.node_name, objects.key(pod), objects.uid(pod))
        if link.options.source_api is None or link.is_self or place.uid in self._none:
            return

        if _mounts(link.candidate(place.pod, place.uid)) and not self._names_node(place):
            await self._refresh(place, self._remote.copy(place), link)

    def _names_node(self, place: Place) -> bool:
        if made := self._made.get(place):
            return made.node == place.node

        copy = self._remote.copy(place)
        return objects.annotations(copy or {}).get(keys.TOKEN_NODE) == place.node

    def renew(self, pod: Object, link: Link) -> None:
        """Keep fresh the token that a pending pod's candidate mounts, which an earlier leader may
        have created.

        A candidate that is older than its Target's wish for tokens mounts none.
        """
        candidate = link.candidate(objects.key(pod), objects.uid(pod))
        if link.options.source_api is not None and _mounts(candidate):
            self._wake(self._announce(pod, link))

    def _announce(self, pod: Object, link: Link) -> Place:
        place = Place(link.node_name, objects.key(pod), objects.uid(pod))
        until = self._clock.monotonic() + _CANDIDATE_TIMEOUT
        self._announced.setdefault(place.uid, {})[place.node] = until
        return place

    def release(self, pod_key: str, uid: str, node: str) -> None:
        """Note that the candidate of exactly that pod in a target is deleted."""
        place = Place(node, pod_key, uid)
        self._retract(place)
        self._wake(place)

    def _retract(self, place: Place) -> None:
        nodes = self._announced.get(place.uid, {})
        nodes.pop(place.node, None)
        if not nodes:
            self._announced.pop(place.uid, None)

    def _wake(self, place: Place) -> None:
        if self._remote.is_watched(place.node):
            self._controller.add(place)
        else:
            self._forget(place)

    def _bound(self, node: str) -> Iterator[Place]:
        return (Place(node, key, pod.uid) for key, pod in self._pods.items() if pod.node == node)

    def _forget(self, place: Place) -> None:
        self._retract(place)
        self._made.pop(place, None)

    async def _reconcile(self, place: Place) -> float | None:
        link = self._links.get(place.node)
        if link is None or not (self._remote.is_listed(place) and link.synced):
            return None  # the link, or the end of a list, wakes this place

        if not link.health.healthy:
            return None

        copy = self._remote.copy(place)
        need = self._need(place, link, copy)
        if need is Need.NONE:
            return await self._remove(place, copy, link)

        if need is Need.WANTED and place.uid not in self._none:
            left = self._left(place, copy)
            return left if left > 0 else await self._refresh(place, copy, link)

        return _RECHECK if need is Need.ANNOUNCED else None

    def _need(self, place: Place, link: Link, copy: Object | None) -> Need:
        pod = self._pods.get(place.pod)
        if pod is None or pod.uid != place.uid or pod.node not in ("", place.node):
            return Need.NONE

        if link.options.source_api is None:
            return Need.TOLERATED  # until the pod ends; it gets no new one

        announced = self._announced.get(place.uid, {}).get(place.node)
        candidate = link.candidate(place.pod, place.uid)
        if pod.ending and candidate is None:
            return Need.NONE  # its delegate pod is deleted, whoever keeps the proxy pod

        if pod.node:
            mounted = _mounts(candidate)
            return Need.WANTED if copy is not None or mounted or announced else Need.NONE

        if candidate is not None:
            return Need.TOLERATED if announced is None else Need.WANTED

        return Need.ANNOUNCED if announced and announced > self._clock.monotonic() else Need.NONE

    def _left(self, place: Place, copy: Object | None) -> float:
        """Return the seconds until the tokens of a pod are to be replaced.

        A target that removes or spoils them soon has new ones, but no more often than every
        `_MIN_INTERVAL` seconds.
        """
        made = self._made.get(place)
        noted = objects.annotations(copy or {}).get(keys.TOKEN_REFRESH, "")
        refresh = made.refresh if made else objects.parse_timestamp(noted)
        left = 0.0
        if copy is not None and refresh is not None and refresh.tzinfo is not None:
            left = min((refresh - self._clock.now()).total_seconds(), float(LIFE))

        return max(left, made.at + _MIN_INTERVAL - self._clock.monotonic() if made else 0.0)

    async def _refresh(self, place: Place, copy: Object | None, link: Link) -> float | None:
        namespace, name = objects.split_key(place.pod)
        try:
            pod = await self._local.get(kinds.PODS, name, namespace)
        except NotFound:
            return None  # the informer will report it, and wake this place

        if objects.uid(pod) != place.uid:
            return None

        try:
            holders, problem = await self._holders(pod)
            if problem:
                self._warn(place, pod, problem)

            if not wants(pod, holders):
                if problem:
                    return _RECHECK

                self._none.add(place.uid)
                return await self._remove(place, copy, link)

            await self._write(place, pod, link, holders, copy)
        except (ConfigError, Denied, Invalid, NotFound) as error:  # an administrator has to act
            self._warn(place, pod, str(error))
            return _RECHECK

        return max(self._left(place, {}), _MIN_INTERVAL)

    def _warn(self, place: Place, pod: Object, text: str) -> None:
        self._events.event(about(pod), WARNING, "TokenNotRefreshed", text)
        log.info("%s: no token for %s: %s", place.node, place.pod, text)

    async def _write(
        self, place: Place, pod: Object, link: Link, holders: Holders, copy: Object | None
    ) -> None:
        issued: IssuedToken = await self._token_requester.mint(pod, link, holders)
        if copy is not None:  # its delegate mounts it by that name
            issued.secret["metadata"]["name"] = objects.name(copy)

        try:
            await link.client.create(kinds.SECRETS, issued.secret)
        except AlreadyExists:
            await self._replace(issued.secret, link)

        node = objects.annotations(issued.secret).get(keys.TOKEN_NODE, "")
        self._made[place] = _MadeTokens(self._clock.monotonic(), issued.refresh, node)

    async def _replace(self, secret: Object, link: Link) -> None:
        name, namespace = objects.name(secret), objects.namespace(secret)
        present = await link.client.get(kinds.SECRETS, name, namespace)
        if not self._identity.made(present):
            raise ConfigError(
                f"Secret {name} of target {link.target.name} is not from this cluster: delete it "
                "in the target, to make room for the pod's token"
            )

        head = {"apiVersion": kinds.SECRETS.api_version, "kind": kinds.SECRETS.kind}
        await link.client.replace(kinds.SECRETS, {**head, **copies.successor(secret, present)})

    async def _remove(self, place: Place, copy: Object | None, link: Link) -> float | None:
        if not self._complete(place.node, objects.split_key(place.pod)[0]):
            return _SYNC_RETRY

        self._forget(place)
        if copy is not None and not objects.is_terminating(copy):
            await link.client.discard(kinds.SECRETS, copy)

        return None


def _mounts(candidate: Object | None) -> bool:
    return candidate is not None and keys.TOKEN in objects.annotations(candidate)


def _pod_state(pod: Object | None) -> _PodState | None:
    if pod is None or objects.is_finished(pod):
        return None

    node = objects.node_name(pod)
    return _PodState(objects.uid(pod), node, objects.is_terminating(pod))
