"""Creates and deletes candidates in targets, a bounded number of requests at a time for each.

The bounds belong to links, so that a target that hangs holds up only those that ask it; and a
request that has waited for its turn at a target that no longer answers fails instead. Namespaces
take turns.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final
from weakref import WeakKeyDictionary

from vnode.api import cures, keys, kinds, names, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.pods import preemption
from vnode.pods.preemption import Rounds
from vnode.pods.source.candidate_forms import KnownForm
from vnode.pods.source.candidates import CandidateState
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.unanswered_candidates import UnansweredCandidates
from vnode.runtime.fair_slots import FairSlots
from vnode.runtime.link import Link
from vnode.telemetry import turn_waits

LEFTOVERS: Final = 200
"""Candidates of one namespace in a target that may wait for their deletion."""
_AT_ONCE: Final = 16  # requests to one target: a pod with a reservation must not wait long

log = logging.getLogger(__name__)


class CandidateRequests:
    """Creates and deletes candidates.

    `leftovers` counts the pods of a namespace whose candidates on a node wait for their deletion.
    `gang_mark` returns what candidates of a pod tell of its gang.
    """

    def __init__(
        self,
        factory: ChaperonFactory,
        clock: Clock,
        leftovers: Callable[[str, str], int] = lambda _node, _namespace: 0,
        gang_mark: Callable[[Object], str] = lambda _pod: "",
    ) -> None:
        self._gang_mark = gang_mark
        self._factory = factory
        self._leftovers = leftovers
        self._clock = clock
        # Entries live as long as their links.
        self._turns: WeakKeyDictionary[Link, FairSlots[str]] = WeakKeyDictionary()
        self._waits = turn_waits.of("candidates")
        self._unanswered: WeakKeyDictionary[Link, UnansweredCandidates] = WeakKeyDictionary()
        self._answered: WeakKeyDictionary[Link, float] = WeakKeyDictionary()
        # UIDs of chaperons that were deleted here, until their informer shows that they are gone.
        self._deleted: WeakKeyDictionary[Link, set[str]] = WeakKeyDictionary()
        self._withdrawn: WeakKeyDictionary[Link, set[str]] = WeakKeyDictionary()  # or may be

    def answered(self, link: Link) -> float | None:
        """Return when (monotonic) the target last answered the creation of a candidate."""
        return self._answered.get(link)

    async def create(
        self, pod: Object, link: Link, *, preempts: Rounds | None = None
    ) -> tuple[KnownForm, str]:
        """Create a candidate of the pod; return what was sent, and the note of `EnsureCopies`.

        With `preempts` it may preempt others, if its priority lets it, after so many rounds.

        Raises VnodeError if it could not be created, AlreadyExists if it is there, TooManyRequests
        while more of the pod's namespace are still to be deleted than a burst leaves; if another
        pod's is there by its name, ConfigError that says whose it is.
        """
        _must_answer(link)
        self._refuse_heaps(pod, link)
        unanswered = self._unanswered_of(link)
        await unanswered.begin(pod)
        try:
            return await self._create(pod, link, preempts)
        except BaseException:
            unanswered.settle(objects.key(pod))
            raise

    def on_answer(self, candidate: Object, link: Link, state: CandidateState) -> None:
        """Note what a target says of a candidate; a few that it has not answered may be there."""
        unanswered, key = self._unanswered_of(link), parent_key(candidate)
        if state in (CandidateState.RESERVED, CandidateState.REJECTED):
            unanswered.answer(key, is_placed=state is CandidateState.RESERVED)
        else:
            unanswered.settle(key)

    def note_vain(self, candidate: Object, link: Link) -> None:
        """Note that a candidate is in vain whatever its target says, if it has said nothing yet."""
        self._unanswered_of(link).answer(parent_key(candidate), is_placed=False)

    def on_early_end(self, candidate: Object, link: Link) -> None:
        """Note that a candidate is gone whose pod was deleted before it has run."""
        self._unanswered_of(link).note_vain(objects.namespace(candidate))

    def _unanswered_of(self, link: Link) -> UnansweredCandidates:
        if link not in self._unanswered:
            self._unanswered[link] = UnansweredCandidates(self._clock, self._waits.note)

        return self._unanswered[link]

    async def _create(
        self, pod: Object, link: Link, preempts: Rounds | None
    ) -> tuple[KnownForm, str]:
        mark = preemption.mark(pod, allowed=preempts is not None)
        inputs = self._factory.inputs(pod, link)
        built, note = await self._factory.build(pod, link, allowed=False, preemption=mark)
        if preempts is not None and preempts.count:
            built["metadata"]["annotations"][keys.PREEMPTED] = preempts.encode()

        if gang := self._gang_mark(pod):
            built["metadata"]["annotations"][keys.GANG_MARK] = gang

        async with self._turn(link, pod):
            try:
                made = await link.client.create(kinds.POD_CHAPERONS, built)
            except ApiError as error:
                self._answered[link] = self._clock.monotonic()
                if isinstance(error, Denied | NotFound):
                    link.doubt()

                if isinstance(error, AlreadyExists) and (whose := await name_conflict(pod, link)):
                    raise ConfigError(whose) from error

                if is_not_granted(error, link):
                    cure = cures.grant(objects.namespace(pod))
                    raise ConfigError(f"{error.message}; {cure}") from error

                raise

            self._answered[link] = self._clock.monotonic()

        return KnownForm(inputs, objects.annotations(built)[keys.FORM], objects.uid(made)), note

    def _refuse_heaps(self, pod: Object, link: Link) -> None:
        """Raise TooManyRequests while candidates of the namespace pile up in the target.

        Whoever creates and deletes pods without a pause would have it hold ever more of them.
        """
        namespace = objects.namespace(pod)
        if (left := self._leftovers(link.node_name, namespace)) > LEFTOVERS:
            message = (
                f"{left} candidates of pods of namespace {namespace} that are gone, or elsewhere, "
                "are still to be deleted there"
            )
            raise TooManyRequests(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message)

    async def delete(
        self, candidate: Object, link: Link, *, expected: bool = True, allowed: bool = False
    ) -> None:
        """Delete a candidate that cannot win; one that cannot be deleted now is found again later.

        One that is allowed to run is only deleted if the caller has made sure that nobody can have
        allowed it (`allowed`). With `expected`, it matters to nobody that the candidate is gone.
        """
        is_allowed = permissions.is_allowed(candidate)
        if objects.is_terminating(candidate) or (is_allowed and not allowed):
            return

        deleted, uid = self._deleted.setdefault(link, set()), objects.uid(candidate)
        withdrawn = self._withdrawn.setdefault(link, set())
        is_asked_again = uid in withdrawn
        if expected:
            deleted.add(uid)

        try:
            async with self._turn(link, candidate):
                withdrawn.add(uid)
                await link.client.discard(kinds.POD_CHAPERONS, candidate)
        except BaseException as error:
            deleted.discard(uid)
            is_refused = isinstance(error, ApiError) and not isinstance(error, ServerError)
            if is_refused and not is_asked_again:
                withdrawn.discard(uid)

            if not isinstance(error, (ApiError, Unreachable)):
                raise

            log.debug("candidate %s stays in %s: %s", objects.key(candidate), link.target, error)

    def expected(self, candidate: Object, link: Link) -> bool:
        """Return whether a candidate that is gone was deleted here; to be called once for each."""
        deleted, uid = self._deleted.get(link, set()), objects.uid(candidate)
        self._withdrawn.get(link, set()).discard(uid)
        self._unanswered_of(link).settle(parent_key(candidate))
        if uid not in deleted:
            return False

        deleted.discard(uid)
        return True

    def is_withdrawn(self, candidate: Object, link: Link) -> bool:
        """Return whether a candidate may be gone, or going, whatever its informer shows still.

        A request to delete it was sent. If nobody waited for the answer it may yet be carried out.
        """
        return objects.uid(candidate) in self._withdrawn.get(link, ())

    def await_end(self, candidate: Object, link: Link) -> None:
        """Have `expected` return False for a candidate that is being deleted: its pod waits."""
        self._deleted.get(link, set()).discard(objects.uid(candidate))

    @asynccontextmanager
    async def _turn(self, link: Link, obj: Object) -> AsyncIterator[None]:
        """Wait for the turn of the namespace of a pod, or of its candidate."""
        slots = self._turns.get(link)
        if slots is None:
            slots = self._turns[link] = FairSlots(_AT_ONCE, waited=self._waits.note)

        async with slots.take(objects.namespace(obj)):
            _must_answer(link)
            yield


def is_not_granted(error: ApiError, link: Link) -> bool:
    """Tell whether a target denies what a ClusterSource would allow that holds there."""
    return isinstance(error, Denied) and error.status == 403 and not link.target.namespace


async def name_conflict(pod: Object, link: Link) -> str:
    """Return whose PodChaperon has the name of a pod's, as a sentence; "" if the pod's, or none.

    Raises VnodeError if the target cannot be asked.
    """
    namespace, name = objects.namespace(pod), names.chaperon(objects.name(pod), objects.uid(pod))
    try:
        found = await link.client.get(kinds.POD_CHAPERONS, name, namespace)
    except NotFound:
        return ""

    labels, uid = objects.labels(found), objects.uid(pod)
    is_own = labels.get(keys.PARENT_UID) == uid  # whatever else somebody has changed
    if is_own or link.is_candidate(found, objects.key(pod), uid):
        return ""

    cluster = labels.get(keys.PARENT_CLUSTER_NAME)
    owner = f"pod/{parent_key(found)}" + (f" of cluster {cluster}" if cluster else "")
    return (
        f"podchaperon/{namespace}/{name}, as this pod's would be named, is that of {owner}: delete "
        "it in the target if nobody needs it, or create this pod under another name"
    )


def _must_answer(link: Link) -> None:
    if not link.health.healthy:
        raise Unreachable(link.health.message)
