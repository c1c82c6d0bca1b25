"""One pending proxy pod through the candidate phase: from feasible targets to a binding.

A scheduling cycle has ranked the targets; from here on the pod has a task of its own, which sleeps
until one of its candidates moves. What to do next is decided by `candidates.decide`; this module
does it: creates chaperons, binds the proxy to the winner's virtual node, and says why if there is
none.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Conflict,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import candidates, chaperon
from vnode.pods.candidates import Bind, Candidate, Create, GiveUp, Settings, State, Wait
from vnode.pods.chaperon import Parent
from vnode.runtime.links import Link, Links
from vnode.telemetry import metrics

_NEWCOMERS: Final = 16  # chaperons that are being created at any moment

Bring = Callable[[Object, Link], Awaitable[str]]
"""Sees that a target has what a pod refers to, before its candidate is created there. The answer,
if not "", is for the pod's user; VnodeError if the target must not have the pod now."""
Renew = Callable[[Object, Link], None]
"""Has the same looked at for a candidate that is there already."""

log = logging.getLogger(__name__)


class Outcome(enum.Enum):
    """How a candidate phase ended."""

    BOUND = enum.auto()
    GONE = enum.auto()  # deleted, or bound by somebody else: nothing is left to do
    UNSCHEDULABLE = enum.auto()


@dataclass(slots=True, eq=False)
class Phase:
    """What one pod's task knows beyond what the stores say."""

    key: str
    uid: str
    ranked: Sequence[str]
    started: float  # monotonic
    barred: frozenset[str] = frozenset()  # nodes that this pod must not be on, whatever they say
    moved: asyncio.Event = field(default_factory=asyncio.Event)  # set to look again
    created: dict[str, float] = field(default_factory=dict)  # node -> when, by this phase
    failed: dict[str, str] = field(default_factory=dict)  # node -> why it could not be created
    rejected: set[str] = field(default_factory=set)  # nodes whose no was counted
    notes: dict[str, str] = field(default_factory=dict)  # node -> what its user must know
    shaky: bool = False  # one of those failures may not happen again


class Placer:
    """Runs candidate phases; `assume` and `forget` keep the scheduler's books."""

    def __init__(
        self,
        client: Client,
        links: Links,
        parent: Parent,
        *,
        settings: Settings,
        lookup: Callable[[str], Object | None],
        assume: Callable[[Object, str], None],
        forget: Callable[[str, str], object],
        bring: Bring,
        renew: Renew,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._parent = parent
        self._settings = settings
        self._lookup = lookup
        self._assume = assume
        self._forget = forget
        self._bring = bring
        self._renew = renew
        self._clock = clock
        # Few at once: whoever has a reservation must not wait behind a burst of newcomers.
        self._creating = asyncio.Semaphore(_NEWCOMERS)
        self._heard: dict[str, float] = {}  # node -> when its target last answered any candidate

    def heard(self, node: str) -> None:
        """The target behind the node has answered about one of its candidates."""
        self._heard[node] = self._clock.monotonic()

    async def place(
        self, phase: Phase, bind: Callable[[Object, str], Awaitable[bool]]
    ) -> tuple[Outcome, dict[str, str]]:
        """Try candidates until one wins or none is left; the second value says why, by node.

        `bind` binds the pod to a node; False means that the target is given back and the pod is
        tried again later.
        """
        # Where the pod may no longer be: its target was cordoned, say.
        await self._drop(phase, phase.barred)
        self._renew_earlier(phase)
        while True:
            phase.moved.clear()
            pod = self._lookup(phase.key)
            if not _is_pending(pod, phase.uid):
                return Outcome.GONE, {}

            assert pod is not None
            known = self.known(phase)
            self._count_rejections(phase, known)
            action = candidates.decide(
                phase.ranked, known, self._heard, self._clock.monotonic(), self._settings
            )
            match action:
                case Bind(node):
                    self._measure(phase, node, "reserved")
                    return ended(await bind(pod, node))
                case Create(node):
                    await self._create(phase, pod, node)
                case Wait(seconds):
                    await happens_within(phase.moved, seconds)
                case GiveUp():
                    for node, candidate in known.items():
                        if candidate.state is State.WAITING:
                            self._measure(phase, node, "silent")

                    surplus = candidates.surplus(phase.ranked, known, self._settings)
                    await self._drop(phase, surplus)
                    return Outcome.UNSCHEDULABLE, self._explanations(phase, known)

    def known(self, phase: Phase) -> dict[str, Candidate]:
        """Every candidate of the pod, by node, as far as we have seen.

        A target says itself that a candidate is reserved. It is believed only where scheduling
        would have the pod, so that a hostile target cannot draw pods that are not for it.
        """
        found: dict[str, Candidate] = {}
        for link in self._allowed_links(phase):
            existing = link.candidate(phase.uid)
            node, since = link.node_name, phase.created.get(link.node_name, phase.started)
            if existing is not None and not objects.is_terminating(existing):
                found[node] = _with_health(candidates.read(existing, since), link)
            elif node in phase.failed:
                found[node] = Candidate(State.FAILED, since, phase.failed[node])
            elif node in phase.created:
                found[node] = _with_health(Candidate(State.WAITING, since), link)

        for node in phase.ranked:
            if self._links.get(node) is None:
                found.setdefault(
                    node, Candidate(State.FAILED, phase.started, "the target is not connected")
                )

        return found

    def _allowed_links(self, phase: Phase) -> list[Link]:
        namespace, _name = objects.split_key(phase.key)
        links = self._links.covering(namespace)
        return [link for link in links if link.node_name not in phase.barred]

    def _explanations(self, phase: Phase, known: Mapping[str, Candidate]) -> dict[str, str]:
        silent = (
            f"no answer for {self._settings.patience:g} s (do the agent and the candidate "
            "scheduler of the target run?)"
        )
        said = {node: candidate.message or silent for node, candidate in known.items()}
        notes = {node: f" ({note})" for node, note in phase.notes.items()}
        return {node: text + notes.get(node, "") for node, text in said.items()}

    def _renew_earlier(self, phase: Phase) -> None:
        """Candidates of earlier attempts, where this one would make them too."""
        pod = self._lookup(phase.key)
        if pod is None or not _is_pending(pod, phase.uid):
            return

        for node in phase.ranked:
            link = self._links.get(node)
            if link is not None and link.candidate(phase.uid) is not None:
                self._renew(pod, link)

    async def _create(self, phase: Phase, pod: Object, node: str) -> None:
        link = self._links.get(node)
        phase.created[node] = self._clock.monotonic()
        if link is None:
            return

        self._assume(pod, node)
        try:
            built = chaperon.for_link(pod, self._parent, link, allowed=False)
            if note := await self._bring(pod, link):
                phase.notes[node] = note

            async with self._creating:
                await link.client.create(kinds.POD_CHAPERONS, built)

            # Its silence begins now, not while it waited in our own queue.
            phase.created[node] = self._clock.monotonic()
        except AlreadyExists:
            log.debug("candidate of %s on %s exists", phase.key, node)
        except (ApiError, ConfigError, Unreachable) as error:
            phase.failed[node] = error.message if isinstance(error, ApiError) else str(error)
            phase.shaky |= isinstance(error, (Unreachable, ServerError, TooManyRequests))
            self._forget(phase.uid, node)
            self._measure(phase, node, "failed")

    async def _drop(self, phase: Phase, nodes: Iterable[str]) -> None:
        """Delete the pod's candidates on those nodes, where there are any."""
        for node in nodes:
            link = self._links.get(node)
            existing = link.candidate(phase.uid) if link else None
            if link is not None and existing is not None:
                await delete_candidate(link, existing)

    def _count_rejections(self, phase: Phase, known: Mapping[str, Candidate]) -> None:
        for node, candidate in known.items():
            if candidate.state is State.REJECTED and node not in phase.rejected:
                phase.rejected.add(node)
                self._measure(phase, node, "rejected")

    def _measure(self, phase: Phase, node: str, outcome: str) -> None:
        if (created := phase.created.get(node)) is not None:
            link = self._links.get(node)
            target = str(link.target) if link else node
            seconds = self._clock.monotonic() - created
            metrics.CANDIDATE_SECONDS.labels(target, outcome).observe(seconds)


def ended(bound: bool) -> tuple[Outcome, dict[str, str]]:
    """The end of a phase that came as far as binding."""
    return (Outcome.BOUND if bound else Outcome.UNSCHEDULABLE), {}


async def hold(client: Client, pod: Object, finalizer: str) -> bool:
    """See that the pod cannot vanish before its delegate; False if it is gone already.

    The webhook has done so, but for pods that are older than their Target. Raises Conflict if the
    pod has changed meanwhile, which is to be tried again.
    """
    present = objects.finalizers(pod)
    if finalizer in present:
        return True

    body = {
        "metadata": {
            "uid": objects.uid(pod),
            "resourceVersion": objects.resource_version(pod),
            "finalizers": [*present, finalizer],
            "labels": {keys.HAS_FINALIZER: "true"},
        }
    }
    try:
        await client.patch(kinds.PODS, objects.name(pod), body, objects.namespace(pod))
    except NotFound:
        return False

    return True


async def bind(client: Client, pod: Object, node: str) -> bool:
    """Bind a proxy pod: the decision. False if the pod is gone, bound, or being deleted."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": objects.name(pod), "uid": objects.uid(pod)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    try:
        await client.create(
            kinds.PODS,
            binding,
            objects.namespace(pod),
            name=objects.name(pod),
            subresource="binding",
        )
    except (NotFound, Conflict) as error:
        log.info("pod %s was not bound to %s: %s", objects.key(pod), node, error.message)
        return False

    return True


async def delete_candidate(link: Link, candidate: Object) -> None:
    """Delete a candidate that cannot win; one that cannot be deleted now is found again later."""
    try:
        await link.client.discard(kinds.POD_CHAPERONS, candidate)
    except (ApiError, Unreachable) as error:
        log.debug("candidate %s stays in %s: %s", objects.key(candidate), link.target, error)


def _with_health(candidate: Candidate, link: Link) -> Candidate:
    """A target that does not answer cannot take a pod now, but a decision stands."""
    if link.health.healthy:
        return candidate

    state = State.HELD if candidate.state is State.COMMITTED else State.FAILED
    return Candidate(state, candidate.since, link.health.message)


def _is_pending(pod: Object | None, uid: str) -> bool:
    return (
        pod is not None
        and objects.uid(pod) == uid
        and not objects.is_terminating(pod)
        and not objects.spec(pod).get("nodeName")
    )
