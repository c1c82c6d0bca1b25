"""Replaces candidates that are not their pod as it is now, before they can win.

They may be of a former image, size or label, of rules that no policy has any more, or of a Target
that was changed. Such a candidate is deleted and made anew in the same attempt, so that the pod
does not lose its turn; meanwhile it counts as one that has not answered. Nothing of a candidate is
patched: the target's scheduler may have looked at it already, and its delegate may be bound between
two requests (docs/decisions/0078).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from vnode.api import keys, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.objects import Object
from vnode.pods.source.attempt import Attempt, Start
from vnode.pods.source.candidate_deletion import CandidateDeletion
from vnode.pods.source.candidate_forms import KnownForm
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.known_candidates import KnownCandidates
from vnode.runtime.link import Link
from vnode.scheduling.assumptions import Assumptions

log = logging.getLogger(__name__)


class OutdatedCandidates:
    """Finds them among the candidates of an attempt's pod, and has them deleted."""

    def __init__(
        self,
        factory: ChaperonFactory,
        known: KnownCandidates,
        deletion: CandidateDeletion,
        assumptions: Assumptions,
        clock: Clock,
    ) -> None:
        self._factory = factory
        self._known = known
        self._deletion = deletion
        self._assumptions = assumptions
        self._clock = clock

    def replace(self, attempt: Attempt, pod: Object, start: Start) -> None:
        """Delete those of the pod, for the attempt to create them anew once they are gone.

        A target that cannot be asked now keeps its own; nor may they win. Nor is one made anew a
        second time in an attempt: who changes a pod without a pause would have each of its changes
        carried to all targets.
        """
        attempt.unclear.clear()
        for candidate, link in self._undecided(attempt):
            node, uid = link.node_name, objects.uid(candidate)
            if attempt.renewing.get(node, ("",))[0] == uid:
                continue

            try:
                current = self._is_current(attempt, pod, candidate, link)
            except VnodeError as error:
                attempt.unclear[node] = str(error)
                attempt.retryable = True
                continue

            if current:
                continue

            if _was_changed(attempt, uid, node):
                attempt.unclear[node] = f"the target has changed annotation {keys.FORM} there"
                attempt.retryable = True
                continue

            if node in attempt.renewing:
                attempt.unclear[node] = (
                    "the pod, or a policy about it, was changed again: it is tried again soon"
                )
                attempt.retryable = True
                continue

            log.info("candidate of %s on %s is outdated, made anew", attempt.key, node)
            self._forget(attempt, node)
            attempt.renewing[node] = uid, self._clock.monotonic()
            attempt.remade += 1
            self._deletion.delete_in_vain(attempt, (node,), start)

    def may_win(self, attempt: Attempt, pod: Object, node: str) -> bool:
        """Tell whether the pod may be bound to a node, as for what would run there.

        Raises VnodeError if that is not known now.
        """
        found = self._known.at(attempt, node)
        if found is None or permissions.is_allowed(found[0]):
            return True

        return self._is_current(attempt, pod, *found)

    def _undecided(self, attempt: Attempt) -> Iterator[tuple[Object, Link]]:
        for candidate, link in self._known.all(attempt):
            is_allowed = permissions.is_allowed(candidate)
            if (
                link.health.healthy
                and not is_allowed
                and not self._known.is_ending(candidate, link)
            ):
                yield candidate, link

    def _is_current(self, attempt: Attempt, pod: Object, candidate: Object, link: Link) -> bool:
        node = link.node_name
        try:
            inputs = self._factory.inputs(pod, link)
            known = attempt.forms.get(node)
            if known is None or not known.inputs.same(inputs):
                known = KnownForm(inputs, self._factory.form(pod, candidate, link))
                attempt.forms[node] = known
        except ConfigError:  # nothing may go there now, and who creates the next one says why
            attempt.forms.pop(node, None)
            return False

        return objects.annotations(candidate).get(keys.FORM) == known.digest

    def _forget(self, attempt: Attempt, node: str) -> None:
        """Have the attempt go on as if it had not asked this target."""
        if attempt.created.pop(node, None) is not None:
            self._assumptions.forget(attempt.uid, node)

        attempt.failed.pop(node, None)
        attempt.rejected.discard(node)
        if node not in attempt.ranked:
            attempt.ranked = (*attempt.ranked, node)


def _was_changed(attempt: Attempt, uid: str, node: str) -> bool:
    """Tell whether this attempt has made a candidate as it is to be, and its digest is another.

    Somebody in the target has changed that, and would do so again.
    """
    wanted, sent = attempt.forms.get(node), attempt.sent.get(node)
    if wanted is None or sent is None:
        return False

    return (sent.uid, sent.digest) == (uid, wanted.digest)
