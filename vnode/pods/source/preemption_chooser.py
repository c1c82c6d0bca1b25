"""Chooses the one target that may preempt others for a pod that fits nowhere.

Every target that was asked has said what it would preempt, and has left it at that. When none is
left to ask, the one with the least harm gets the candidate anew, with permission; all others stay
without. Another one is chosen only after this one has not made room, and then the permission goes
first. The candidates themselves say where it is, so that a new leader knows; and how often others
were preempted for the pod, which the next candidate is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, VnodeError
from vnode.api.identity import parent_key
from vnode.api.objects import Object, Objects
from vnode.api.slices import in_slices
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, EventRecorder, about
from vnode.pods import preemption
from vnode.pods.preemption import NO_ROUNDS, Rounds, Victims
from vnode.pods.source import broken_budgets
from vnode.pods.source.attempt import Attempt
from vnode.pods.source.broken_budgets import DisruptionBudgets
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.runtime.link import MOST_ALIKE, PARENT_UID_INDEX, Link
from vnode.runtime.links import Links

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Offers:
    """What is known of one pod."""

    victims: dict[str, Victims] = field(default_factory=dict)  # by node, of targets that said so
    chosen: str = ""
    rounds: Rounds = NO_ROUNDS  # of all its targets together
    renewed: str = ""  # the node whose candidate is being deleted, to be made anew


class PreemptionChooser:
    """Remembers what targets would preempt for pods, and lets one of them do so."""

    def __init__(
        self,
        client: Client,
        links: Links,
        requests: CandidateRequests,
        *,
        lookup: Callable[[str], Object | None],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._requests = requests
        self._lookup = lookup  # the pod of a key as the informers have it
        self._events = events
        self._clock = clock
        self._began = clock.now()
        self._offers: dict[str, _Offers] = {}  # by UID; only of pods that some target would serve

    def forget(self, uid: str) -> None:
        """Forget a pod that waits no more."""
        self._offers.pop(uid, None)

    def chosen(self, uid: str, excluded: Collection[str] = ()) -> str:
        """Return the node whose target may preempt for a pod, "" for none."""
        offers = self._offers.get(uid)
        return offers.chosen if offers and offers.chosen not in excluded else ""

    def rounds(self, uid: str) -> Rounds:
        """Return how often others were preempted for a pod."""
        offers = self._offers.get(uid)
        return offers.rounds if offers else NO_ROUNDS

    def is_renewed(self, uid: str, node: str) -> bool:
        """Tell whether a candidate is gone to be made anew with permission; once for each."""
        offers = self._offers.get(uid)
        if offers is None or offers.renewed != node:
            return False

        offers.renewed = ""
        return True

    async def choose(self, pod: Object, attempt: Attempt) -> bool:
        """Choose after an attempt that no target has served; return whether to try again soon."""
        if not self._waits(attempt):
            return False

        candidates = self._candidates(attempt)
        offers = self._updated(pod, candidates)
        if offers is None or any(preemption.is_preempting(c) for _, c in candidates.values()):
            return False

        if not offers.rounds.may_go_on(self._clock.now()):  # others took the room each time
            return False

        allowed = [n for n, (_, c) in candidates.items() if preemption.is_allowed(c)]
        for node in allowed:  # it has not made room: only a new offer counts
            offers.victims.pop(node, None)

        able = {n: v for n, v in offers.victims.items() if self._is_able(n, attempt)}
        if not able:
            if offers.chosen:
                offers.chosen = ""
                await self._set_nominated(pod, None)

            return False

        broken = await self._broken(able) if len(able) > 1 else {}
        least = min(able, key=lambda n: (*able[n].harm(broken.get(n, 0)), n))
        for node in allowed:
            link, candidate = candidates[node]
            await self._requests.delete(candidate, link)

        if offers.chosen != least:
            offers.chosen = least
            await self._nominate(pod, least, able[least])

        if least in candidates:
            offers.renewed = least
            link, candidate = candidates[least]
            await self._requests.delete(candidate, link, expected=False)

        return True

    def _waits(self, attempt: Attempt) -> bool:
        pod = self._lookup(attempt.key)
        return pod is not None and objects.uid(pod) == attempt.uid and not objects.node_name(pod)

    def _candidates(self, attempt: Attempt) -> dict[str, tuple[Link, Object]]:
        found = {}
        for link in self._links.covering(objects.split_key(attempt.key)[0]):
            candidate = link.candidate(attempt.key, attempt.uid)
            if candidate is not None and not objects.is_terminating(candidate):
                found[link.node_name] = link, candidate

        return found

    def _updated(
        self, pod: Object, candidates: Mapping[str, tuple[Link, Object]]
    ) -> _Offers | None:
        """Return what the pod's targets have said by now; None if none has ever said anything."""
        uid = objects.uid(pod)
        answers = {node: preemption.read(candidate) for node, (_, candidate) in candidates.items()}
        offers = self._offers.get(uid)
        if offers is None:
            if not any(answers.values()):
                return None

            offers = self._offers[uid] = _Offers()

        latest = max(
            (offers.rounds, *self._noted(pod, offers, candidates)), key=lambda each: each.count
        )
        offers.rounds = latest.without_node()
        for node, victims in answers.items():
            if victims is not None:
                offers.victims[node] = victims
            elif not preemption.is_allowed(candidates[node][1]):
                offers.victims.pop(node, None)

        return offers

    def _noted(
        self, pod: Object, offers: _Offers, candidates: Mapping[str, tuple[Link, Object]]
    ) -> Iterator[Rounds]:
        """Yield how often others were preempted by what candidates say, as far as that may be.

        Any target can write that others were preempted without end, so that the pod would wait for
        ever. Only the chosen one counts on; of a pod that a former leader may have chosen one for,
        those that seem to have been it.
        """
        before, now = offers.rounds.count, self._clock.now()
        created = objects.created_at(pod)
        is_older = created is not None and created < self._began
        for node, (_, candidate) in candidates.items():
            most = before
            if node == offers.chosen:
                most += preemption.MOST_ROUNDS
            elif is_older and not offers.chosen and preemption.is_allowed(candidate):
                most = max(before, preemption.MOST_ROUNDS)

            yield preemption.rounds(candidate).limited(most, now)

    def _is_able(self, node: str, attempt: Attempt) -> bool:
        link = self._links.get(node)
        return link is not None and link.health.healthy and node not in attempt.excluded

    async def _broken(self, able: Mapping[str, Victims]) -> dict[str, int]:
        """Return how many victims this cluster's PodDisruptionBudgets protect, by node."""
        ending = {node: await self._proxies(node, victims) for node, victims in able.items()}
        budgets = await self._budgets(ending)
        return {n: await budgets.broken_by(pods, self._clock) for n, pods in ending.items()}

    async def _proxies(self, node: str, victims: Victims) -> Objects:
        """Return which pods of this cluster would end with their delegates."""
        link = self._links.get(node)
        if link is None:
            return []

        found: dict[str, Object] = {}  # by UID; a target may name one again and again
        for uid in victims.proxies[: preemption.MOST_PROXIES]:
            alike = link.chaperons.store.by_index(PARENT_UID_INDEX, uid, MOST_ALIKE)
            async for chaperon in in_slices(() if uid in found else alike, self._clock):
                pod = self._lookup(parent_key(chaperon))
                if pod is not None and objects.uid(pod) == uid:
                    found[uid] = pod
                    break

        return list(found.values())

    async def _budgets(self, ending: Mapping[str, Objects]) -> DisruptionBudgets:
        """Return the PodDisruptionBudgets of the namespaces of these pods."""
        namespaces = {objects.namespace(pod) for pods in ending.values() for pod in pods}
        found = DisruptionBudgets()
        for namespace in sorted(namespaces):
            try:
                budgets = await self._client.list(
                    kinds.POD_DISRUPTION_BUDGETS, namespace, limit=broken_budgets.OF_NAMESPACE
                )
            except VnodeError as error:
                log.warning("PodDisruptionBudgets of %s do not count: %s", namespace, error)
            else:
                await found.read(budgets, self._clock)

        return found

    async def _nominate(self, pod: Object, node: str, victims: Victims) -> None:
        """Tell on the pod where room is made for it, as kube-scheduler does."""
        link = self._links.get(node)
        message = f"Preempting {victims} in target {link.target if link else node}"
        self._events.event(about(pod), NORMAL, "Preempting", message)
        await self._set_nominated(pod, node)

    async def _set_nominated(self, pod: Object, node: str | None) -> None:
        body = objects.status_patch(pod, {"nominatedNodeName": node})
        name, namespace = objects.name(pod), objects.namespace(pod)
        try:
            await self._client.patch(kinds.PODS, name, body, namespace, subresource="status")
        except NotFound:
            log.debug("pod %s is gone", objects.key(pod))
