"""Runs the candidate phase of a pending proxy: from feasible targets to one that has a place.

A scheduling cycle has ranked the targets; from here on the pod has a task of its own, which sleeps
until one of its candidates changes. `candidates.decide` decides what to do next; this module does
it: it has chaperons created and deleted, and explains if no target has a place. The phase itself
never waits for a target: requests run beside it, and end with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import TICK, Clock, happens_within
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.source import candidates
from vnode.pods.source.attempt import Attempt, AttemptEnded, Outcome
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
from vnode.runtime.links import Link, Links
from vnode.scheduling.assumptions import Assumptions
from vnode.telemetry import metrics

_DELETING: Final = 5.0  # seconds that the end of a phase waits for candidates to be deleted

_Start = Callable[..., asyncio.Task[None]]
"""Starts a task that ends with the phase, as `TaskGroup.create_task` does."""

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
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._requests = requests
        self._assumptions = assumptions
        self._settings = settings
        self._lookup = lookup  # the pod of a key as the informer has it
        self._renew = renew
        self._clock = clock
        self._answered: dict[str, float] = {}  # node -> when its target last answered a candidate

    def on_answer(self, node: str) -> None:
        """Record that the target behind the node has answered about one of its candidates."""
        self._answered[node] = self._clock.monotonic()

    def has_deleted(self, candidate: Object, link: Link) -> bool:
        """Return whether a candidate that is gone was deleted here; to be called once for each."""
        return self._requests.expected(candidate, link)

    async def place(
        self, attempt: Attempt, bind: Callable[[str], Awaitable[bool]]
    ) -> tuple[Outcome, dict[str, str]]:
        """Try candidates until one wins or none is left; return the reasons, too, by node.

        `bind` binds the pod to a node; False means that the target is given back and the pod is
        tried again later. The pod stays assumed wherever it was; the caller forgets it there.
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

        if isinstance(decided, AttemptEnded):
            return decided.outcome, decided.reasons

        attempt.winner = decided.node
        return ended(await bind(decided.node))

    async def _decide(self, attempt: Attempt, start: _Start) -> Bind | AttemptEnded:
        self._withdraw(attempt, start)
        while True:
            attempt.changed.clear()
            pod = self._lookup(attempt.key)
            if not _is_pending(pod, attempt.uid):
                return AttemptEnded(Outcome.GONE)

            assert pod is not None
            known = self.known(attempt)
            self._count_rejections(attempt, known)
            action = candidates.decide(
                attempt.ranked, known, self._answered, self._clock.monotonic(), self._settings
            )
            match action:
                case Bind(node):
                    self._measure(attempt, node, "reserved")
                    refusal = self._assumptions.confirm(pod, node)
                    if refusal.is_success:
                        return action

                    attempt.refused[node] = refusal
                    self._delete(attempt, (node,), start)
                case Create(node):
                    self._begin(attempt, pod, node, start)
                case Wait(seconds):
                    await happens_within(attempt.changed, max(TICK, seconds))
                case GiveUp():
                    self._give_up(attempt, known, start)
                    return AttemptEnded(Outcome.UNSCHEDULABLE, self._explanations(attempt, known))

    def known(self, attempt: Attempt) -> dict[str, Candidate]:
        """Return every candidate of the pod that the informers have, by node.

        A target itself reports that a candidate is reserved. It is believed only where scheduling
        would have the pod, so that a hostile target cannot draw pods that are not for it.
        """
        found: dict[str, Candidate] = {}
        for link in self._allowed_links(attempt):
            candidate = self._known_at(link, attempt)
            if candidate is not None:
                found[link.node_name] = candidate

        for node in attempt.ranked:
            if self._links.get(node) is None:
                found.setdefault(
                    node,
                    Candidate(
                        CandidateState.FAILED, attempt.started, "the target is not connected"
                    ),
                )

        return found

    def _known_at(self, link: Link, attempt: Attempt) -> Candidate | None:
        existing = link.candidate(attempt.key, attempt.uid)
        node, since = link.node_name, attempt.created.get(link.node_name, attempt.started)
        if node in attempt.refused:
            return Candidate(CandidateState.FAILED, since, attempt.refused[node].message)

        if existing is not None and not self._is_ending(existing, link):
            return _with_health(candidates.read(existing, since), link)

        if node in attempt.failed:
            return Candidate(CandidateState.FAILED, since, attempt.failed[node])

        if node not in attempt.ranked:
            return None

        if existing is not None:
            return Candidate(CandidateState.FAILED, since, "the candidate there is being deleted")

        if node in attempt.creating:
            # A target that creates others meanwhile is busy: this one waits for its turn.
            since = max(since, self._requests.answered(link) or since)

        if node in attempt.created or not link.health.healthy:
            return _with_health(Candidate(CandidateState.WAITING, since), link)

        return None

    def _is_ending(self, candidate: Object, link: Link) -> bool:
        return objects.is_terminating(candidate) or self._requests.is_withdrawn(candidate, link)

    def _allowed_links(self, attempt: Attempt) -> list[Link]:
        namespace, _name = objects.split_key(attempt.key)
        links = self._links.covering(namespace)
        return [link for link in links if link.node_name not in attempt.excluded]

    def _explanations(self, attempt: Attempt, known: Mapping[str, Candidate]) -> dict[str, str]:
        silent = (
            f"no answer for {self._settings.patience:g} s (check that the agent and the candidate "
            "scheduler of the target run)"
        )
        reasons = {node: candidate.message or silent for node, candidate in known.items()}
        notes = {node: f" ({note})" for node, note in attempt.notes.items()}
        return {node: text + notes.get(node, "") for node, text in reasons.items()}

    def _renew_earlier(self, attempt: Attempt) -> None:
        """Renew candidates of earlier attempts, where this one would create them too."""
        pod = self._lookup(attempt.key)
        if pod is None or not _is_pending(pod, attempt.uid):
            return

        for node in attempt.ranked:
            link = self._links.get(node)
            if link is not None and link.candidate(attempt.key, attempt.uid) is not None:
                self._renew(pod, link)

    def _begin(self, attempt: Attempt, pod: Object, node: str, start: _Start) -> None:
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
            allowed = node == attempt.preempts
            if note := await self._requests.create(pod, link, preempts=allowed):
                attempt.notes[node] = note

            # The target is silent from now on at the earliest: before, we had not asked it.
            attempt.created[node] = self._clock.monotonic()
        except AlreadyExists:
            log.debug("candidate of %s on %s exists", attempt.key, node)
        except VnodeError as error:
            attempt.failed[node] = error.message if isinstance(error, ApiError) else str(error)
            # A Conflict is about a quota that many creations change at once.
            passing = (Unreachable, ServerError, TooManyRequests, Conflict)
            attempt.retryable |= isinstance(error, passing)
            self._measure(attempt, node, "failed")
            attempt.changed.set()

        del attempt.creating[node]

    def _delete(
        self,
        attempt: Attempt,
        nodes: Iterable[str],
        start: _Start,
        *,
        expected: bool = True,
    ) -> None:
        """Delete the pod's candidates on those nodes in the background, where there are any."""
        for node in nodes:
            link = self._links.get(node)
            existing = link.candidate(attempt.key, attempt.uid) if link else None
            if link is not None and existing is not None:
                name = f"delete candidate of {attempt.key} on {node}"
                deletion = self._requests.delete(existing, link, expected=expected)
                attempt.deleting.add(start(deletion, name=name))

    def _withdraw(self, attempt: Attempt, start: _Start) -> None:
        """Delete candidates where the pod must not be any more: on a target that was cordoned, say.

        Nobody allows a candidate before its pod is bound. So even a candidate that is allowed must
        not run if the API server has its pod as pending.
        """
        self._delete(attempt, {*attempt.excluded, *self._withdrawn(attempt)}, start)
        for node in attempt.excluded:
            link = self._links.get(node)
            existing = link.candidate(attempt.key, attempt.uid) if link else None
            if existing is not None and keys.IS_ALLOWED in objects.annotations(existing):
                assert link is not None
                name = f"withdraw candidate of {attempt.key} on {node}"
                attempt.deleting.add(
                    start(self._delete_allowed(attempt, existing, link), name=name)
                )

    def _withdrawn(self, attempt: Attempt) -> list[str]:
        """List nodes where it is not known whether a candidate was deleted: it may not win."""
        nodes = []
        for link in self._allowed_links(attempt):
            existing = link.candidate(attempt.key, attempt.uid)
            if existing is None or objects.is_terminating(existing):
                continue

            if self._requests.is_withdrawn(existing, link):
                nodes.append(link.node_name)

        return nodes

    async def _delete_allowed(self, attempt: Attempt, candidate: Object, link: Link) -> None:
        try:
            namespace, name = objects.split_key(attempt.key)
            pod = await self._client.get(kinds.PODS, name, namespace)
        except NotFound:
            return
        except VnodeError as error:
            log.info("candidate %s stays in %s: %s", objects.key(candidate), link.target, error)
            return

        if _is_pending(pod, attempt.uid):
            await self._requests.delete(candidate, link, allowed=True)

    def _give_up(self, attempt: Attempt, known: Mapping[str, Candidate], start: _Start) -> None:
        """Delete candidates that are of no use to a later attempt, or to a target's autoscaler."""
        for node, candidate in known.items():
            if candidate.state is CandidateState.WAITING:
                self._measure(attempt, node, "silent")

        asked = {**attempt.asked, **dict.fromkeys(attempt.created, attempt.started)}
        others = {node: found for node, found in known.items() if node not in attempt.kept}
        surplus = candidates.surplus(attempt.ranked, others, asked, self._settings)
        self._delete(attempt, surplus, start)
        lost = [node for node, candidate in known.items() if candidate.state is CandidateState.LOST]
        self._delete(attempt, lost, start, expected=False)  # so that its pod is tried again then
        attempt.retryable |= any(n not in attempt.refused for n in self._withdrawn(attempt))
        for node in attempt.ranked:
            link = self._links.get(node)
            existing = link.candidate(attempt.key, attempt.uid) if link else None
            if link is not None and existing is not None and self._is_ending(existing, link):
                self._requests.await_end(existing, link)

    def _count_rejections(self, attempt: Attempt, known: Mapping[str, Candidate]) -> None:
        for node, candidate in known.items():
            if candidate.state is CandidateState.REJECTED and node not in attempt.rejected:
                attempt.rejected.add(node)
                self._measure(attempt, node, "rejected")

    def _measure(self, attempt: Attempt, node: str, outcome: str) -> None:
        if (created := attempt.created.get(node)) is not None:
            link = self._links.get(node)
            target = str(link.target) if link else node
            seconds = self._clock.monotonic() - created
            metrics.CANDIDATE_SECONDS.labels(target, outcome).observe(seconds)


def ended(bound: bool) -> tuple[Outcome, dict[str, str]]:
    """Return the end of a phase that came as far as binding."""
    return (Outcome.BOUND if bound else Outcome.UNSCHEDULABLE), {}


def _with_health(candidate: Candidate, link: Link) -> Candidate:
    """Mark a candidate failed if its target does not answer; a decision stands."""
    if link.health.healthy:
        return candidate

    state = (
        CandidateState.HELD
        if candidate.state is CandidateState.COMMITTED
        else CandidateState.FAILED
    )
    return Candidate(state, candidate.since, link.health.message)


def _is_pending(pod: Object | None, uid: str) -> bool:
    return (
        pod is not None
        and objects.uid(pod) == uid
        and not objects.is_terminating(pod)
        and not objects.node_name(pod)
    )
