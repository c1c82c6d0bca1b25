"""Creates, updates and removes the copies that families want in targets.

Keys are (target, object). Pods, originals, copies and the health of targets wake them; `_settle`
reads the stores and corrects the difference. `ensure` is for callers that wait: a candidate is
created only after everything its pod refers to has been reconciled, which costs no request if it is
in place.

Nothing is overwritten or deleted that is not ours, nor because of an incomplete list. What changes
all the time is written in intervals (`vnode.runtime.change_limiter`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Unreachable,
    VnodeError,
)
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.listeners import subscription_scope
from vnode.api.objects import Object
from vnode.following import copy_problems
from vnode.following.family import Family
from vnode.following.needed_copies import NeededCopies
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.following.remote_copies import RemoteCopies, TargetCopies
from vnode.following.writing import RECHECK, Outcome, Writer
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.runtime import write_limits
from vnode.runtime.change_limiter import ChangeLimiter
from vnode.runtime.controller import Controller
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit

GRACE: Final = 5.0  # seconds for which an unused copy stays: its next user may be on the way
TIMEOUT: Final = 10.0  # seconds that a candidate waits for what its pod refers to
_EVENTS: Final = 20  # objects that get an Event about one problem
REASON: Final = "NotFollowed"  # of Events
RECREATED: Final = "FollowedAnew"

log = logging.getLogger(__name__)

_Answer = str | VnodeError


class Follower:
    """Carries families to targets. `complete` tells whether all pods of a namespace on a node are
    known."""

    def __init__(
        self,
        links: Links,
        identity: Identity,
        *,
        complete: Callable[[str, str], bool],
        enabled_namespaces: EnabledNamespaces,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.opened = asyncio.Event()  # set once originals are known, and links are looked at
        self._identity = identity
        self._namespaces = enabled_namespaces
        self._events = events
        self._clock = clock
        self._families: dict[Kind, Family] = {}
        self._controller: Controller[Key] = Controller(
            "following",
            self._reconcile,
            subject=self._subject,
            workers=16,
            lane=lambda key: key.node,
            namespace=lambda key: key.ref.namespace,
        )
        self._copies = RemoteCopies(
            links,
            identity,
            self._families,
            self.wake,
            self._wanted,
            self._known_namespaces,
            clock,
        )
        self._needed = NeededCopies(self._families, self._copies, enabled_namespaces, complete)
        self._waiting: dict[Key, list[asyncio.Future[_Answer]]] = {}  # no empty lists
        self._unused: dict[Key, float] = {}  # since when (monotonic) a copy has no user
        self._limiter: ChangeLimiter[Key] = ChangeLimiter(
            "changes of what follows",
            "copies",
            (write_limits.COPIES, write_limits.COPIES_OF_NAMESPACE),
            clock,
            namespace=lambda key: key.ref.namespace,
        )
        self._writer = Writer(identity, self._warn, self._notify, clock)

    def carry(self, family: Family) -> None:
        """Carry that family; call it before `run`."""
        for kind in family.carried:
            self._families[kind] = family

    def wake(self, key: Key) -> None:
        """Reconcile an object in a target, if its kind is carried."""
        if key.ref.kind in self._families:
            self._controller.add(key)

    def wake_kind(self, kind: Kind) -> None:
        """Reconcile all copies of that kind, and all that should be one, in all targets."""
        self._copies.wake_kind(kind)

    async def run(self) -> None:
        """Follow until cancelled; proxy pods must be known."""
        async with supervise() as tasks:
            with subscription_scope():  # ends before the tasks: none is started for a later link
                for family in {id(family): family for family in self._families.values()}.values():
                    await family.open(tasks)

                self._namespaces.subscribe(self._on_namespace)
                self._copies.open(tasks)
                self.opened.set()
                await self._controller.run()

    def _on_namespace(self, name: str) -> None:
        for kind in self._families:
            self._copies.wake_kind(kind, name)

    def _known_namespaces(self, link: Link) -> Iterator[str]:
        """Return where there may be copies: where pods take part, and where chaperons are."""
        yield from self._namespaces.names()
        yield from map(objects.namespace, link.chaperons.store.values())

    async def ensure(self, keys: Sequence[Key]) -> str:
        """Return once these objects are in their targets as far as possible.

        Returns a message about what is not as a user may expect, "" if there is none. Raises
        VnodeError if one could not be copied.
        """
        asked = [self._ask(key) for key in keys]
        try:
            async with asyncio.timeout(TIMEOUT):
                answers = [await future for future in asked]
        except TimeoutError:
            raise Unreachable(
                f"the ConfigMaps and Secrets of the pod were not copied within {TIMEOUT:g} s"
            ) from None

        for answer in answers:
            if isinstance(answer, VnodeError):
                raise answer

        return "; ".join(str(answer) for answer in answers if answer)

    def _wanted(self, node: str, kind: Kind) -> Iterator[Key | None]:
        """Yield the keys to reconcile once the copies of that kind on that node are known.

        None for each other key that it has looked at.
        """
        for key in chain(self._families[kind].keys_on(node), list(self._waiting)):
            is_one = key is not None and key.node == node and key.ref.kind is kind
            yield key if is_one else None

    def _ask(self, key: Key) -> asyncio.Future[_Answer]:
        future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        self._controller.add(key)
        return future

    def _answer(self, key: Key, answer: _Answer) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(answer)

    def _subject(self, key: Key) -> audit.Subject:
        """Return a pod that needs the object there, or whatever else does; else the object."""
        about = next(self._families[key.ref.kind].involved_objects(key), None)
        return key.ref.subject if about is None else audit.of_reference(about)

    async def _reconcile(self, key: Key) -> float | None:
        remote = self._copies.at(key.node)
        problem = copy_problems.find(key, remote, self._families[key.ref.kind])
        if problem is not None:
            if isinstance(problem, ConfigError) and key not in self._waiting:
                self._warn(key, str(problem))  # who waits says it to the pod

            self._answer(key, problem)

        if remote is not None and key.ref.kind not in remote.informers:
            self._answer(key, "")

        if remote is not None and problem is None and self._is_first(remote, key):
            self._copies.follow(remote, key.ref)

        if remote is None or problem is not None or not remote.is_listed(key.ref):
            self._unused.pop(key, None)
            return None  # the link, its health, or the end of the list wakes this key

        try:
            message, later = await self._settle(key, remote)
        except (Denied, Invalid, ConfigError, NotFound) as error:
            text = self._explain(error, key, remote)
            self._warn(key, text)
            self._answer(key, ConfigError(text))
            return RECHECK
        except (Conflict, AlreadyExists):
            raise  # decided upon an old state: the next attempt answers those who wait
        except VnodeError as error:
            if isinstance(error, ApiError):  # of what is unreachable, the Target tells
                self._warn(key, self._explain(error, key, remote))

            self._answer(key, error)
            raise

        self._answer(key, message)
        self._families[key.ref.kind].on_reconciled(key)
        return later

    def _is_first(self, remote: TargetCopies, key: Key) -> bool:
        """Tell whether an object of a kind is wanted where there has been none of it."""
        need = self._needed.need
        return remote.is_unwatched(key.ref) and need(key, remote.link) is not Need.NONE

    async def _settle(self, key: Key, remote: TargetCopies) -> Outcome:
        copy = remote.copy(key.ref)
        if copy is not None and not self._identity.owns(copy):
            copy = None  # of another cluster of our name: not ours

        need = self._needed.need(key, remote.link)
        if need is Need.NONE:
            return "", await self._remove(key, remote, copy)

        self._unused.pop(key, None)
        if need is Need.TOLERATED:
            return "", None

        message, later = await self._follow(key, remote, copy)
        return message, RECHECK if need is Need.ANNOUNCED and later is None else later

    async def _remove(self, key: Key, remote: TargetCopies, copy: Object | None) -> float | None:
        self._writer.forget(key)
        if copy is None or objects.is_terminating(copy):
            self._limiter.forget(key)
            self._unused.pop(key, None)
            return None

        now = self._clock.monotonic()
        left = self._unused.setdefault(key, now) + GRACE - now
        if left > 0 or not self._needed.may_go(key):
            return max(left, GRACE / 5)

        del self._unused[key]
        if not self._needed.is_needed_elsewhere(key, copy):
            await remote.link.client.discard(key.ref.kind, copy)

        return None

    async def _follow(self, key: Key, remote: TargetCopies, copy: Object | None) -> Outcome:
        family, client = self._families[key.ref.kind], remote.link.client
        reads = family.has_changed(key.ref)
        if reads and (wait := self._pace(key)):
            return "", wait

        original = await family.original(key.ref, remote.link, copy)
        if original is None:
            if copy is not None:
                await client.discard(key.ref.kind, copy)

            return "", None

        if original.refusal and copy is None:
            name = remote.link.target.name
            self._warn(key, f"{key.ref} does not follow to target {name}: {original.refusal}")
            return "", None

        pace = _at_once if reads else self._pace
        outcome = await self._writer.put(key, remote, family, original, copy, pace)
        if outcome[1] is None:
            self._limiter.settle(key)

        return outcome

    def _pace(self, key: Key) -> float:
        """Return the seconds for which a change has to wait, unless a pod waits for it; else count
        it."""
        if key not in self._waiting and (wait := self._limiter.wait(key)):
            return wait

        self._limiter.sent(key)
        return 0.0

    def copies_of(self, ref: Ref) -> dict[str, Object | None]:
        """Return each target's copy, trimmed, by node; targets not listed yet are left out."""
        found: dict[str, Object | None] = {}
        for remote in self._copies:
            if remote.is_listed(ref):
                copy = remote.copy(ref)
                ours = copy is not None and self._identity.owns(copy)
                found[remote.link.node_name] = copy if ours else None

        return found

    def _explain(self, error: VnodeError, key: Key, remote: TargetCopies) -> str:
        return copy_problems.explain(error, key, remote, self._families[key.ref.kind])

    def _warn(self, key: Key, text: str) -> None:
        self._record_event(key, WARNING, REASON, text)

    def _notify(self, key: Key, text: str) -> None:
        self._record_event(key, NORMAL, RECREATED, text)

    def _record_event(self, key: Key, type_: str, reason: str, text: str) -> None:
        log.info("%s: %s", key.node, text)
        for about in islice(self._families[key.ref.kind].involved_objects(key), _EVENTS):
            self._events.event(about, type_, reason, text)


def _at_once(_key: Key) -> float:
    return 0.0
