"""Reads the candidates of a pod out of the informers of all targets. No I/O.

What an attempt knows by itself counts, too: which candidates it has asked for, and what became of
that. `candidates.decide` decides by what is found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vnode.api import objects
from vnode.api.objects import Object
from vnode.pods.source import candidates
from vnode.pods.source.attempt import Attempt
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.candidates import Candidate, CandidateState
from vnode.runtime.link import Link
from vnode.runtime.links import Links


class KnownCandidates:
    """Finds the candidates of an attempt's pod."""

    def __init__(self, links: Links, requests: CandidateRequests) -> None:
        self._links = links
        self._requests = requests

    def by_node(self, attempt: Attempt) -> dict[str, Candidate]:
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

        if existing is not None and (held := _held(existing, node, attempt)):
            return _with_health(held, link)

        if existing is not None and not self.is_ending(existing, link):
            found = candidates.read(existing, since)
            if found.state is CandidateState.PREEMPTING and node in attempt.feasible:
                found = replace(found, has_room=node not in attempt.created)

            return _with_health(found, link)

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

    def at(self, attempt: Attempt, node: str) -> tuple[Object, Link] | None:
        """Return the chaperon of the pod's candidate on a node, if there is one, with its link."""
        link = self._links.get(node)
        existing = link.candidate(attempt.key, attempt.uid) if link is not None else None
        return None if link is None or existing is None else (existing, link)

    def all(self, attempt: Attempt) -> Iterator[tuple[Object, Link]]:
        """Yield the chaperons of the pod's candidates where it may be, with their links."""
        for link in self._allowed_links(attempt):
            existing = link.candidate(attempt.key, attempt.uid)
            if existing is not None:
                yield existing, link

    def withdrawn(self, attempt: Attempt) -> list[str]:
        """List nodes where it is not known whether a candidate was deleted: it may not win."""
        nodes = []
        for link in self._allowed_links(attempt):
            existing = link.candidate(attempt.key, attempt.uid)
            if existing is None or objects.is_terminating(existing):
                continue

            if self._requests.is_withdrawn(existing, link):
                nodes.append(link.node_name)

        return nodes

    def is_ending(self, candidate: Object, link: Link) -> bool:
        """Tell whether a candidate is going, or may be: it cannot win any more."""
        return objects.is_terminating(candidate) or self._requests.is_withdrawn(candidate, link)

    def _allowed_links(self, attempt: Attempt) -> list[Link]:
        namespace, _name = objects.split_key(attempt.key)
        links = self._links.covering(namespace)
        return [link for link in links if link.node_name not in attempt.excluded]


def _held(existing: Object, node: str, attempt: Attempt) -> Candidate | None:
    """Return what a candidate counts as that may not win now, whatever its target says of it."""
    if node in attempt.unclear:
        return Candidate(CandidateState.FAILED, attempt.started, attempt.unclear[node])

    uid, begun = attempt.renewing.get(node, ("", 0.0))
    return Candidate(CandidateState.WAITING, begun) if objects.uid(existing) == uid else None


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
