"""All that is known about one pod when its story is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.pods.source import candidates
from vnode.pods.source.candidates import CandidateState
from vnode.runtime.links import TargetKey


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """One target that the pod's namespace may use.

    `silence` says why the target itself could not be asked, "" if it was; then `chaperon`,
    `delegate` and what belongs to them is as the target has it. `missing` are the objects that the
    delegate uses and its namespace lacks, as `ConfigMap "x"`, and `missing_here` those of them that
    the source lacks as well, from where they would follow. `label` is what messages call it, if
    that is not its name.
    """

    key: TargetKey
    target: Object
    node: Object | None = None
    silence: str = ""
    chaperon: Object | None = None
    delegate: Object | None = None
    events: Objects = field(default_factory=list)
    missing: tuple[str, ...] = ()
    missing_here: frozenset[str] = frozenset()
    label: str = ""

    @property
    def name(self) -> str:
        """As in the agent's own messages."""
        return self.label or self.key.name

    @property
    def ready(self) -> Object:
        """The Ready condition of the Target, empty if there is none yet."""
        return objects.condition(self.target, "Ready") or {}

    @property
    def is_ready(self) -> bool:
        """The source's agent calls it working."""
        return self.ready.get("status") == "True"

    @property
    def candidate(self) -> CandidateState | None:
        """What the target has said about the pod; None if it was not asked."""
        return candidates.read(self.chaperon, 0).state if self.chaperon else None

    @property
    def rejection(self) -> str:
        """Why the target has no place, in its own words; "" if it did not say."""
        if self.chaperon is None or self.candidate is not CandidateState.REJECTED:
            return ""

        return candidates.read(self.chaperon, 0).message


@dataclass(frozen=True, slots=True)
class Facts:
    """A pod of the source, and all about it; None or empty for what could not be read."""

    pod: Object
    now: datetime
    namespace: Object | None = None
    events: Objects = field(default_factory=list)
    targets: tuple[TargetFacts, ...] = ()
    lease: Object | None = None  # of the source's agent

    @property
    def node_name(self) -> str:
        """Where the pod is bound to; "" while it is not."""
        return objects.node_name(self.pod)

    @property
    def chosen(self) -> TargetFacts | None:
        """The target that it is bound to, if that still exists."""
        return next((t for t in self.targets if t.key.node_name == self.node_name), None)
