"""Runs the candidate phase of a pending proxy: from feasible targets to one that has a place.

A scheduling cycle has ranked the targets; from here on the pod has a task of its own, which sleeps
until one of its candidates changes. `candidates.decide` decides what to do next; this module does
it: it has chaperons created and deleted (`candidate_deletion`), and explains if no target has a
place. The phase itself never waits for a target: requests run beside it, and end with it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.durations import TICK
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Denied,
    NotGranted,
    ServerError,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.source import candidates, forwarded_candidates, proxy_state
from vnode.pods.source.attempt import Attempt, AttemptEnded, Outcome, Start
from vnode.pods.source.candidate_deletion import CandidateDeletion
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.candidates import (
    Bind,
    Candidate,
    CandidateSettings,
    CandidateState,
    Create,
    GiveUp,
    Wait,
)
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.gang_rounds import GangGate, GangRounds, StrayCandidate
from vnode.pods.source.known_candidates import KnownCandidates
from vnode.pods.source.outdated_candidates import OutdatedCandidates
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.status import SUCCESS, unschedulable
from vnode.telemetry import metrics

_ELSEWHERE: Final = unschedulable("its gang goes elsewhere")

_DELETING: Final = 5.0  # seconds that the end of a phase waits for candidates to be deleted

Renew = Callable[[Object, Link], None]
"""Checks anew what a pod refers to, for a candidate that exists already."""

log = logging.getLogger(__name__)


class CandidatePhase:
    """Runs candidate phases, one for each pod at a time."""

    def __init__(
        self,
        client: Client,
        links: Links,
        requests: CandidateRequests,
        assumptions: Assumptions,
        *,
        settings: CandidateSettings,
        lookup: Callable[[str], Object | None],
        renew: Renew,
        factory: ChaperonFactory,
        gangs: GangRounds,
        clock: Clock,
    ) -> None:
        self._links = links
        self._gangs = gangs
        self._requests = requests
        self._known = KnownCandidates(links, requests)
        self._deletion = CandidateDeletion(client, self._known, requests)
        self._outdated = OutdatedCandidates(
            factory, self._known, self._deletion, assumptions, clock
        )
        self._assumptions = assumptions
        self._settings = settings
        self._lookup = lookup  # the pod of a key as the informer has it
        self._renew = renew
        self._clock = clock
        self._answered: dict[str, float] = {}  # node -> when its target last answered a candidate

    def on_answer(self, link: Link, old: Object | None, candidate: Object) -> None:
        """Record that a target has answered about one of its candidates.

        If it says another thing than before, that shows of its scheduler that it works, or of a
        webhook there that it does not.
        """
        now, found = self._clock.monotonic(), candidates.read(candidate, 0.0)
        self._requests.on_answer(candidate, link, found.state)
        if found.state is CandidateState.COMMITTED:
            return  # it is we who have answered: what is said from now on, its kubelet says

        self._answered[link.node_name] = now
        if old is not None and candidates.read(old, 0.0).state is found.state:
            return

        if found.state is CandidateState.RESERVED or objects.status(candidate).get("phase"):
            link.starts.on_decision(now)
        else:
            link.starts.on_refusal(found.message, now)

    def on_gone(self, candidate: Object, link: Link, pod: Object | None) -> None:
        """Record that a candidate is gone; `pod` is the one of its name, if there is one now."""
        uid = objects.labels(candidate).get(keys.PARENT_UID)
        is_left = pod is not None and objects.uid(pod) == uid and not objects.is_terminating(pod)
        if not is_left and candidates.is_in_vain(candidate):
            self._requests.on_early_end(candidate, link)

    def has_deleted(self, candidate: Object, link: Link) -> bool:
        """Return whether a candidate that is gone was deleted here; to be called once for each."""
        return self._requests.expected(candidate, link)

    async def run(self, attempt: Attempt) -> Bind | AttemptEnded:
        """Try candidates until one wins, and is to be bound, or none is left.

        The pod stays assumed wherever it was; the caller forgets it there.
        """
        self._renew_earlier(attempt)
        async with asyncio.TaskGroup() as group:
            decided = await self._decide(attempt, group.create_task)
            for task in attempt.creating.values():
                task.cancel()

            if attempt.deleting and isinstance(decided, AttemptEnded):
                await asyncio.wait(attempt.deleting, timeout=_DELETING)

            for task in attempt.deleting:
                task.cancel()

        return decided

    def may_win(self, attempt: Attempt, pod: Object, node: str) -> bool:
        """Tell whether the pod may be bound to a node as it is: its candidate there is its own.

        Raises VnodeError if that is not known now.
        """
        return self._outdated.may_win(attempt, pod, node)

    async def renew(self, attempt: Attempt) -> None:
        """Delete candidates of an attempt that is over, as far as they are outdated."""
        pod = self._lookup(attempt.key)
        if proxy_state.is_pending(pod, attempt.uid):
            assert pod is not None
            async with asyncio.TaskGroup() as group:
                self._outdated.replace(attempt, pod, group.create_task)

    async def _decide(self, attempt: Attempt, start: Start) -> Bind | AttemptEnded:
        self._deletion.withdraw(attempt, start)
        while True:
            await self._assumptions.ready(self._lookup(attempt.key))
            attempt.changed.clear()
            pod = self._lookup(attempt.key)
            if not proxy_state.is_pending(pod, attempt.uid):
                return AttemptEnded(Outcome.GONE)

            assert pod is not None
            self._outdated.replace(attempt, pod, start)
            known = self._known.by_node(attempt)
            self._count_rejections(attempt, known)
            settings = forwarded_candidates.settings_for(pod, self._settings)
            now = self._clock.monotonic()
            action = candidates.decide(attempt.ranked, known, self._answered, now, settings)
            if attempt.in_gang and (ended := self._leave_with_gang(attempt, action, start)):
                return ended

            match forwarded_candidates.bounded(action, pod, known, now, settings):
                case Bind(node):
                    gate = self._gate(attempt, pod, node, start)
                    if gate is GangGate.PASS:
                        return Bind(node)

                    if gate is GangGate.WAIT:
                        await attempt.changed.wait()
                case Create(node):
                    left = forwarded_candidates.superfluous(pod, known, now, settings)
                    self._leave(attempt, left, start)
                    self._begin(attempt, pod, node, start)
                case Wait(seconds):
                    await happens_within(attempt.changed, max(TICK, seconds))
                case GiveUp():
                    self._give_up(attempt, known, settings, start)
                    return AttemptEnded(Outcome.UNSCHEDULABLE, self._explanations(attempt, known))

    def _gate(self, attempt: Attempt, pod: Object, node: str, start: Start) -> GangGate:
        """Tell whether the pod may be bound where it has a place; if never, leave that."""
        refusal, gate = self._assumptions.confirm(pod, node), GangGate.PASS
        if refusal.is_success and attempt.in_gang:
            gate = self._gangs.at_gate(attempt.uid, node)
            refusal = _ELSEWHERE if gate is GangGate.LEAVE else SUCCESS

        if gate is not GangGate.WAIT:
            self._measure(attempt, node, "reserved")

        if refusal.is_success:
            return gate

        attempt.refused[node] = refusal
        self._deletion.delete_if_pending(attempt, (node,), start)
        return GangGate.LEAVE

    def _leave_with_gang(
        self, attempt: Attempt, action: candidates.Action, start: Start
    ) -> AttemptEnded | None:
        """End the attempt if the pod's gang has given its target up, and give its place back."""
        if not isinstance(action, Bind):
            self._gangs.not_ready(attempt.uid)

        node = attempt.ranked[0] if attempt.ranked else ""
        if not node or not self._gangs.is_left(attempt.uid, node):
            return None

        self._deletion.delete_if_pending(attempt, (node,), start)
        why = self._gangs.explanation(attempt.uid, node)
        return AttemptEnded(Outcome.UNSCHEDULABLE, {node: why} if why else {})

    async def withdraw(self, stray: StrayCandidate) -> None:
        """Delete the candidate of a pod that has no attempt, if it is still pending."""
        attempt = Attempt(stray.key, stray.uid, (stray.node,), self._clock.monotonic())
        async with asyncio.TaskGroup() as group:
            self._deletion.delete_if_pending(attempt, attempt.ranked, group.create_task)

        self._assumptions.forget(stray.uid, stray.node)

    def _explanations(self, attempt: Attempt, known: Mapping[str, Candidate]) -> dict[str, str]:
        silent = (
            f"no answer for {self._settings.patience:g} s (check that the agent and the candidate "
            "scheduler of the target run)"
        )
        busy = "not decided yet: the target answers about other pods meanwhile"
        reasons = {
            node: candidate.message
            or (busy if self._answered.get(node, -math.inf) > candidate.since else silent)
            for node, candidate in known.items()
        }
        notes = {node: f" ({note})" for node, note in attempt.notes.items()}
        return {node: text + notes.get(node, "") for node, text in reasons.items()}

    def _renew_earlier(self, attempt: Attempt) -> None:
        """Renew candidates of earlier attempts, where this one would create them too."""
        pod = self._lookup(attempt.key)
        if pod is None or not proxy_state.is_pending(pod, attempt.uid):
            return

        for node in attempt.ranked:
            if found := self._known.at(attempt, node):
                self._renew(pod, found[1])

    def _begin(self, attempt: Attempt, pod: Object, node: str, start: Start) -> None:
        """Create a candidate in the background; it counts from now on."""
        attempt.created[node] = self._clock.monotonic()
        link = self._links.get(node)
        if link is None:
            return

        # Other pods may have been placed there while this one asked other targets.
        refusal = self._assumptions.assume(pod, node, attempt.generation)
        if not refusal.is_success:
            attempt.refused[node] = refusal
            return

        name = f"create candidate of {attempt.key} on {node}"
        attempt.creating[node] = start(self._create(attempt, pod, link), name=name)

    async def _create(self, attempt: Attempt, pod: Object, link: Link) -> None:
        node = link.node_name
        try:
            rounds = attempt.rounds if node == attempt.preempts else None
            sent, note = await self._requests.create(pod, link, preempts=rounds)
            attempt.forms[node] = attempt.sent[node] = sent
            if note:
                attempt.notes[node] = note

            # The target is silent from now on at the earliest: before, we had not asked it.
            attempt.created[node] = self._clock.monotonic()
        except AlreadyExists:
            log.debug("candidate of %s on %s exists", attempt.key, node)
        except VnodeError as error:
            attempt.failed[node] = error.message if isinstance(error, ApiError) else str(error)
            attempt.retryable |= _is_passing(error)
            self._measure(attempt, node, "failed")
            attempt.changed.set()

        # The target may have told of it before the answer came, and another may be made by now.
        if attempt.creating.get(node) is asyncio.current_task():
            del attempt.creating[node]

    def _leave(self, attempt: Attempt, nodes: Sequence[str], start: Start) -> None:
        """Delete candidates on those nodes, which are not asked again in this attempt."""
        told = self._explanations(attempt, self._known.by_node(attempt)) if nodes else {}
        attempt.failed.update({node: told[node] for node in nodes})
        self._deletion.delete_if_pending(attempt, nodes, start)

    def _give_up(
        self,
        attempt: Attempt,
        known: Mapping[str, Candidate],
        settings: CandidateSettings,
        start: Start,
    ) -> None:
        """Delete candidates that are of no use to a later attempt, or to a target's autoscaler."""
        for node, candidate in known.items():
            if candidate.state is CandidateState.WAITING:
                self._measure(attempt, node, "silent")
                link = self._links.get(node)
                if link is not None and not candidate.message:
                    link.starts.on_silence(candidate.since, self._clock.monotonic())

        asked = {**attempt.asked, **dict.fromkeys(attempt.created, attempt.started)}
        others = {node: found for node, found in known.items() if node not in attempt.kept}
        surplus = candidates.surplus(attempt.ranked, others, asked, settings)
        self._deletion.delete(attempt, surplus, start)
        stuck = [n for n, c in known.items() if c.state is CandidateState.LOST or c.has_room]
        # Not as expected, so that the pod is tried again when they are gone.
        self._deletion.delete(attempt, stuck, start, expected=False)
        attempt.retryable |= any(n not in attempt.refused for n in self._known.withdrawn(attempt))
        for node in attempt.ranked:
            found = self._known.at(attempt, node)
            if found and self._known.is_ending(*found):
                self._requests.await_end(*found)

    def _count_rejections(self, attempt: Attempt, known: Mapping[str, Candidate]) -> None:
        for node, candidate in known.items():
            if candidate.state is CandidateState.REJECTED and node not in attempt.rejected:
                attempt.rejected.add(node)
                self._measure(attempt, node, "rejected")

    def _measure(self, attempt: Attempt, node: str, outcome: str) -> None:
        created, link = attempt.created.get(node), self._links.get(node)
        if created is not None and link is not None:  # else the target is gone, and its series
            seconds = self._clock.monotonic() - created
            metrics.CANDIDATE_SECONDS.labels(str(link.target), outcome).observe(seconds)


def _is_passing(error: VnodeError) -> bool:
    """Tell whether the target may soon take what it refused.

    A Conflict is about a quota that many creations change at once. After a 401 the connection gets
    other credentials, of which no event tells, or its health says that there are none. What is not
    granted may be at any time, and to ask again costs the target little.
    """
    is_unauthorized = isinstance(error, Denied) and error.status == HTTPStatus.UNAUTHORIZED
    return is_unauthorized or isinstance(
        error, (Unreachable, ServerError, TooManyRequests, Conflict, NotGranted)
    )
