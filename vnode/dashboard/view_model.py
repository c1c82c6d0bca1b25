"""Makes the view model: the state of everything at one moment, as the pages show it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.api.resources import Resources
from vnode.dashboard import changes, stages, troubles
from vnode.dashboard.changes import RecentChange
from vnode.dashboard.stages import Flow, Stage, StagedPod
from vnode.dashboard.troubles import FoundTrouble, Surroundings
from vnode.insight import accelerators, accounts, policies, status_text
from vnode.insight.accelerators import AcceleratorUse
from vnode.insight.policies import ShownOverride, ShownPolicy
from vnode.pods.source.candidates import CandidateState
from vnode.scheduling import reported
from vnode.targets import conditions, model

NO_TARGET: Final = "-"
"""Stands for a target's name in filters: pods that have no target yet."""


@dataclass(frozen=True, slots=True)
class TargetView:
    """A Target with its virtual node; `use` is None where its capacity is not known.

    `free` is what all of its nodes have free, None if it does not say so. `summary` is its
    ClusterSummary, None where it is not known or not kept up to date any more.
    """

    name: str
    node: str
    is_ready: bool
    is_connected: bool
    """Pods that run there are not affected by what else keeps it from being ready."""
    reason: str
    message: str
    is_cordoned: bool
    use: accounts.TargetUse | None
    obj: Object = field(default_factory=dict)
    since: str = ""
    free: Resources | None = None
    summary: Object | None = None

    @property
    def tone(self) -> str:
        """The colour of its state."""
        return "bad" if not self.is_ready else "busy" if self.is_cordoned else "good"

    @property
    def state(self) -> str:
        """Its state in one word."""
        return self.reason if not self.is_ready else "Cordoned" if self.is_cordoned else "Ready"


@dataclass(frozen=True, slots=True)
class SourceView:
    """Another cluster that may send pods here: its Source's name, and the user it is for."""

    name: str
    subject: str


@dataclass(frozen=True, slots=True)
class ViewModel:
    """Everything on the pages but the story of one pod."""

    cluster: str
    now: datetime
    targets: tuple[TargetView, ...]
    sources: tuple[SourceView, ...]
    pods: tuple[StagedPod, ...]
    flow: Flow
    notices: tuple[str, ...] = ()
    policies: tuple[ShownPolicy, ...] = ()
    overrides: tuple[ShownOverride, ...] = ()
    policy_notices: tuple[str, ...] = ()
    accelerators: tuple[AcceleratorUse, ...] = ()
    troubles: tuple[FoundTrouble, ...] = ()
    changes: tuple[RecentChange, ...] = ()

    def target_name(self, node: str) -> str:
        """Return the name of the target behind a virtual node; the node's if there is none."""
        return next((target.name for target in self.targets if target.node == node), node)


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Copies of the lists from which a view model is made."""

    cluster: str
    targets: Objects
    nodes: Objects
    sources: Objects
    pods: Objects
    candidates: Mapping[str, Mapping[str, CandidateState]]  # pod's UID -> virtual node -> state
    used: Mapping[str, Resources]
    notices: tuple[str, ...] = ()
    policies: Objects = field(default_factory=list)
    overrides: Objects = field(default_factory=list)
    policy_notices: tuple[str, ...] = ()
    summaries: Mapping[str, tuple[Object | None, bool]] = field(default_factory=dict)
    """By virtual node: the target's ClusterSummary, and whether it runs vnode."""
    chaperons: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)
    """Those of pods that wait, as `candidates` has their states."""
    lease: Object | None = None
    """Of this cluster's agent, if that may be read."""
    events: Objects = field(default_factory=list)
    recorded: tuple[RecentChange, ...] = ()
    """The changes that whoever makes the view has seen itself."""


def make(inputs: ModelInputs, now: datetime) -> ViewModel:
    """Make the view model; targets and pods are sorted by name."""
    nodes = {objects.name(node): node for node in inputs.nodes}
    uses = dict(
        zip(sorted(nodes), accounts.of_targets(inputs.nodes, inputs.pods, inputs.used), strict=True)
    )
    targets = tuple(_targets(inputs, nodes, uses))
    away = {target.node for target in targets if not target.is_connected}
    pods = tuple(
        stages.classify(pod, inputs.candidates.get(objects.uid(pod), {}), away, now)
        for pod in sorted(inputs.pods, key=objects.key)
    )
    return ViewModel(
        inputs.cluster,
        now,
        targets,
        tuple(
            SourceView(objects.key(source), status_text.subject(source))
            for source in sorted(inputs.sources, key=objects.key)
        ),
        pods,
        stages.count(pods),
        inputs.notices,
        tuple(policies.shown(each) for each in sorted(inputs.policies, key=objects.key)),
        tuple(policies.shown_override(each) for each in sorted(inputs.overrides, key=objects.key)),
        inputs.policy_notices,
        tuple(_accelerators(inputs, nodes)),
        troubles.find(pods, _surroundings(inputs, nodes, now)),
        changes.recent(inputs.recorded, inputs.events, inputs.targets, now),
    )


def _surroundings(inputs: ModelInputs, nodes: Mapping[str, Object], now: datetime) -> Surroundings:
    targets = sorted(inputs.targets, key=objects.key)
    return Surroundings(targets, nodes, inputs.chaperons, inputs.policies, inputs.lease, now)


def _targets(
    inputs: ModelInputs, nodes: Mapping[str, Object], uses: Mapping[str, accounts.TargetUse]
) -> Iterable[TargetView]:
    for target in sorted(inputs.targets, key=objects.key):
        node = model.key_of(target).node_name
        ready = objects.condition(target, conditions.READY) or {}
        summary, runs_vnode = inputs.summaries.get(node, (None, False))
        said = summary if runs_vnode else None
        yield TargetView(
            objects.key(target),
            node,
            ready.get("status") == "True",
            (conditions.recorded(target) or {}).get("status") == "True",
            str(ready.get("reason") or "Unknown"),
            str(ready.get("message") or ""),
            bool(objects.spec(nodes.get(node, {})).get("unschedulable")),
            uses.get(node),
            target,
            str(ready.get("lastTransitionTime") or ""),
            reported.read_free(said)[0],
            said,
        )


def _accelerators(inputs: ModelInputs, nodes: Mapping[str, Object]) -> Iterable[AcceleratorUse]:
    for target in sorted(inputs.targets, key=objects.key):
        node = model.key_of(target).node_name
        summary, runs_vnode = inputs.summaries.get(node, (None, False))
        yield from accelerators.of_target(target, nodes.get(node), summary, runs_vnode=runs_vnode)


def matching(
    view: ViewModel, *, namespace: str = "", target: str = "", stage: str = "", text: str = ""
) -> list[StagedPod]:
    """Return the pods that match all given filters.

    Failing pods come first, then those that every target has rejected.
    """
    nodes = {each.node for each in view.targets if each.name == target}
    nodes |= {stages.NOWHERE} if target == NO_TARGET else set()
    found = [
        staged
        for staged in view.pods
        if (not namespace or objects.namespace(staged.pod) == namespace)
        and (not stage or staged.stage.value == stage)
        and (not target or not nodes.isdisjoint(staged.asked or (staged.node,)))
        and text.lower() in objects.name(staged.pod).lower()
    ]
    return sorted(found, key=_rank)


def _rank(staged: StagedPod) -> tuple[bool, bool, int]:
    return staged.stage is not Stage.FAILING, not staged.is_refused, list(Stage).index(staged.stage)
