"""What is to be seen at one moment, as the pages show it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.api.resources import Resources
from vnode.dashboard import stages
from vnode.dashboard.stages import Flow, Placed, Stage
from vnode.insight import accounts, status_text
from vnode.pods.source.candidates import CandidateState
from vnode.targets import conditions, model

NO_TARGET: Final = "-"
"""In the place of a target's name: pods that have none yet."""


@dataclass(frozen=True, slots=True)
class TargetView:
    """A Target, with its virtual node and what its pods ask for; None for what is not known."""

    name: str
    node: str
    is_ready: bool
    word: str
    message: str
    is_cordoned: bool
    use: accounts.TargetUse | None


@dataclass(frozen=True, slots=True)
class SourceView:
    """Another cluster that may send pods here: the name of its Source, and whom that lets in."""

    name: str
    subject: str


@dataclass(frozen=True, slots=True)
class ViewModel:
    """Everything on the pages but the story of one pod."""

    cluster: str
    now: datetime
    targets: tuple[TargetView, ...]
    sources: tuple[SourceView, ...]
    pods: tuple[Placed, ...]
    flow: Flow
    notices: tuple[str, ...] = ()

    def target_name(self, node: str) -> str:
        """The target behind a virtual node; the node itself if there is none."""
        return next((target.name for target in self.targets if target.node == node), node)


@dataclass(frozen=True, slots=True)
class PodFilter:
    """Copies of the lists that a board is made from."""

    cluster: str
    targets: Objects
    nodes: Objects
    sources: Objects
    pods: Objects
    candidates: Mapping[
        str, Mapping[str, CandidateState]
    ]  # pod's UID -> virtual node -> what it said
    used: Mapping[str, Resources]
    notices: tuple[str, ...] = ()


def make(seen: PodFilter, now: datetime) -> ViewModel:
    """The board; targets and pods by name."""
    nodes = {objects.name(node): node for node in seen.nodes}
    uses = dict(
        zip(sorted(nodes), accounts.of_targets(seen.nodes, seen.pods, seen.used), strict=True)
    )
    targets = tuple(_targets(seen.targets, nodes, uses))
    away = {target.node for target in targets if not target.is_ready}
    pods = tuple(
        stages.place(pod, seen.candidates.get(objects.uid(pod), {}), away, now)
        for pod in sorted(seen.pods, key=objects.key)
    )
    return ViewModel(
        seen.cluster,
        now,
        targets,
        tuple(
            SourceView(objects.key(source), status_text.subject(source))
            for source in sorted(seen.sources, key=objects.key)
        ),
        pods,
        stages.count(pods),
        seen.notices,
    )


def _targets(
    targets: Objects, nodes: Mapping[str, Object], uses: Mapping[str, accounts.TargetUse]
) -> Iterable[TargetView]:
    for target in sorted(targets, key=objects.key):
        node = model.key_of(target).node_name
        ready = objects.condition(target, conditions.READY) or {}
        yield TargetView(
            objects.key(target),
            node,
            ready.get("status") == "True",
            str(ready.get("reason") or "Unknown"),
            str(ready.get("message") or ""),
            bool(objects.spec(nodes.get(node, {})).get("unschedulable")),
            uses.get(node),
        )


def matching(
    view: ViewModel, *, namespace: str = "", target: str = "", stage: str = "", text: str = ""
) -> list[Placed]:
    """The pods for which all holds that is given.

    Those that fail come first, then those that no target takes.
    """
    nodes = {each.node for each in view.targets if each.name == target}
    nodes |= {stages.NOWHERE} if target == NO_TARGET else set()
    found = [
        one
        for one in view.pods
        if (not namespace or objects.namespace(one.pod) == namespace)
        and (not stage or one.stage.value == stage)
        and (not target or not nodes.isdisjoint(one.asked or (one.node,)))
        and text.lower() in objects.name(one.pod).lower()
    ]
    return sorted(found, key=_rank)


def _rank(one: Placed) -> tuple[bool, bool, int]:
    return one.stage is not Stage.FAILING, not one.is_refused, list(Stage).index(one.stage)
