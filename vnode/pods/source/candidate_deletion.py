"""Deletes candidates of a pod, beside the phase that decides where it goes.

Some lose, and some are where the pod must not be any more: these are withdrawn, even if they are
allowed already, once the API server has said that the pod is not bound.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.source import candidates, proxy_state
from vnode.pods.source.attempt import Attempt, Start
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.candidates import CandidateState
from vnode.pods.source.known_candidates import KnownCandidates
from vnode.runtime.link import Link

_CHOSEN: Final = (CandidateState.RESERVED, CandidateState.COMMITTED)

log = logging.getLogger(__name__)


class CandidateDeletion:
    """Starts deletions as tasks of a phase, which are in its attempt's `deleting`."""

    def __init__(self, client: Client, known: KnownCandidates, requests: CandidateRequests) -> None:
        self._client = client
        self._known = known
        self._requests = requests

    def delete(
        self,
        attempt: Attempt,
        nodes: Iterable[str],
        start: Start,
        *,
        expected: bool = True,
    ) -> None:
        """Delete the pod's candidates on those nodes in the background, where there are any."""
        for node in nodes:
            if found := self._known.at(attempt, node):
                name = f"delete candidate of {attempt.key} on {node}"
                deletion = self._requests.delete(*found, expected=expected)
                attempt.deleting.add(start(deletion, name=name))

    def withdraw(self, attempt: Attempt, start: Start) -> None:
        """Delete candidates where the pod must not be any more: on a target that was cordoned, say.

        Nobody allows a candidate before its pod is bound. So even a candidate that is allowed must
        not run if the API server has its pod as pending.
        """
        self.delete(attempt, self._known.withdrawn(attempt), start)
        self.delete_in_vain(attempt, attempt.excluded, start)

    def delete_in_vain(self, attempt: Attempt, nodes: Collection[str], start: Start) -> None:
        """Delete candidates that are outdated, or where their pod must not be.

        Those that have no answer yet were in vain, as if they had been refused.
        """
        for node in nodes:
            if found := self._known.at(attempt, node):
                self._requests.note_vain(*found)

        self.delete_if_pending(attempt, nodes, start)

    def delete_if_pending(self, attempt: Attempt, nodes: Iterable[str], start: Start) -> None:
        """Delete candidates on those nodes; reserved ones only if the API server has no binding.

        A former leader may have bound the pod there, and our informer be late.
        """
        for node in nodes:
            found = self._known.at(attempt, node)
            if found and candidates.read(found[0], 0.0).state not in _CHOSEN:
                self.delete(attempt, (node,), start)
            elif found:
                name = f"withdraw candidate of {attempt.key} on {node}"
                attempt.deleting.add(start(self._delete_if_pending(attempt, *found), name=name))

    async def _delete_if_pending(self, attempt: Attempt, candidate: Object, link: Link) -> None:
        try:
            namespace, name = objects.split_key(attempt.key)
            pod = await self._client.get(kinds.PODS, name, namespace)
        except NotFound:
            return
        except VnodeError as error:
            log.info("candidate %s stays in %s: %s", objects.key(candidate), link.target, error)
            return

        if proxy_state.is_pending(pod, attempt.uid):
            await self._requests.delete(candidate, link, allowed=True)
