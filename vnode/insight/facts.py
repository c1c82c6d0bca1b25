"""Holds what was read about one pod, for its story."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.pods.source import candidates
from vnode.pods.source.candidates import CandidateState
from vnode.pods.source.proxy_events import REPORTER
from vnode.targets import conditions


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """One target that the pod's namespace may use.

    `error` says why the target could not be read, "" if it was; then `chaperon`, `delegate` and
    what belongs to them is as the target has it. `missing` are the objects that the delegate uses
    and its namespace lacks, as `ConfigMap "x"`, and `missing_in_source` those of them that the
    source, from where they would follow, lacks as well. `unenforced` are the names of the source's
    NetworkPolicies that select the pod, and of which the target of its delegate has no copy.
    `devices` are those that its claims have got there, as `gpu: DRIVER/POOL/DEVICE`.
    `taints` are those of its nodes, as far as it tells, where they keep the pod away.
    `label` is the target's name in messages, if it differs from its name.
    """

    key: TargetKey
    target: Object
    node: Object | None = None
    error: str = ""
    chaperon: Object | None = None
    delegate: Object | None = None
    events: Objects = field(default_factory=list)
    missing: tuple[str, ...] = ()
    missing_in_source: frozenset[str] = frozenset()
    unenforced: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        """The target's name as in the agent's own messages."""
        return self.label or self.key.name

    @property
    def ready(self) -> Object:
        """The Ready condition of the Target, empty if there is none yet."""
        return objects.condition(self.target, "Ready") or {}

    @property
    def is_ready(self) -> bool:
        """Whether the source's agent reports it as ready."""
        return self.ready.get("status") == "True"

    @property
    def connection(self) -> Object:
        """The condition that says whether the Target is connected, empty if there is none yet."""
        return conditions.recorded(self.target) or {}

    @property
    def is_connected(self) -> bool:
        """Whether the source's agent reaches the target, though no pod may start there."""
        return self.connection.get("status") == "True"

    @property
    def candidate(self) -> CandidateState | None:
        """The state of the pod's candidate in the target; None if it has none there."""
        return candidates.read(self.chaperon, 0).state if self.chaperon else None

    @property
    def rejection(self) -> str:
        """Why the target has no place, in its own words; "" if it has not rejected the pod."""
        if self.chaperon is None or self.candidate is not CandidateState.REJECTED:
            return ""

        return candidates.read(self.chaperon, 0).message

    @property
    def trouble(self) -> str:
        """What the target's scheduler fails at, and tries again; "" if it does not fail."""
        if self.chaperon is None or self.candidate is not CandidateState.WAITING:
            return ""

        return candidates.read(self.chaperon, 0).message


@dataclass(frozen=True, slots=True)
class Facts:
    """A pod of the source and its surroundings; None or empty for what could not be read."""

    pod: Object
    now: datetime
    namespace: Object | None = None
    events: Objects = field(default_factory=list)
    targets: tuple[TargetFacts, ...] = ()
    lease: Object | None = None  # of the source's agent
    policies: Objects = field(default_factory=list)  # placement policies that may be for it
    node: Object | None = None  # that the pod is bound to, if none of its targets is behind it
    lacking_claims: frozenset[str] = frozenset()  # that the pod names, and its namespace lacks

    owner: Object | None = None
    """The Deployment or other owner of a pod that is not a proxy."""
    unread: tuple[str, ...] = ()
    """Of `Targets` and `ClusterTargets` those that these credentials may not list."""

    @property
    def delegate_events(self) -> Objects:
        """Events of the pod's delegate: as its target has them, or as they are told here."""
        there = self.chosen.events if self.chosen is not None else []
        return there or [e for e in self.events if e.get("reportingComponent") == REPORTER]

    @property
    def node_name(self) -> str:
        """The node that the pod is bound to; "" while it is not."""
        return objects.node_name(self.pod)

    @property
    def chosen(self) -> TargetFacts | None:
        """The target that the pod is bound to, if that still exists."""
        return next((t for t in self.targets if t.key.node_name == self.node_name), None)
