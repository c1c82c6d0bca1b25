"""What a situation has `vnode explain` say, and builders of the kinds of situations there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.unit.cli.situations import Situation, a_target, waiting
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState

AGAIN: Final = "tried again by itself"


class Case(NamedTuple):
    """How a situation is made, and what must, and must not, be said of it."""

    make: Callable[[Situation], None]
    state: PodState
    headline: str
    cures: tuple[str, ...]
    unsaid: tuple[str, ...] = ()


def nowhere(reason: str, *cures: str, unsaid: tuple[str, ...] = (), **spec: Any) -> Case:
    """Return the case of a pod that its only target does not take."""

    def make(here: Situation) -> None:
        here.pod(f"0/1 targets: c2: {reason}", **spec)

    told = (*cures, AGAIN)
    return Case(make, PodState.UNSCHEDULABLE, f"c2: {reason}", told, unsaid)


def nodes(reason: str, *cures: str, **more: Any) -> Case:
    """Return the case of a pod that no node of its only target takes."""
    return nowhere(f"0/3 nodes are available: 3 {reason}", *cures, **more)


def between(
    reasons: dict[str, str], headline: str, *cures: str, unsaid: tuple[str, ...] = (), **spec: Any
) -> Case:
    """Return the case of a pod that none of its targets takes, the first of which is c2."""

    def make(here: Situation) -> None:
        for name in reasons:
            if name != "c2":
                here.source.add(kinds.TARGETS, a_target(name))

        told = "; ".join(f"{name}: {text}" for name, text in reasons.items())
        here.pod(f"0/{len(reasons)} targets: {told}", **spec)

    return Case(make, PodState.UNSCHEDULABLE, headline, (*cures, AGAIN), unsaid)


def unready(reason: str, message: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    """Return the case of the only Target that is not ready."""

    def make(here: Situation) -> None:
        here.source.change(
            kinds.TARGETS,
            "c2",
            "default",
            lambda obj: obj["status"].update(
                a_target(status="False", reason=reason, message=message)["status"]
            ),
        )
        here.pod()

    return Case(make, PodState.UNREACHABLE, f"target c2 is not ready: {message}", cures, unsaid)


def sent(
    headline: str,
    *cures: str,
    status: Object | None = None,
    event: tuple[str, str] | None = None,
    state: PodState = PodState.NOT_STARTING,
    unsaid: tuple[str, ...] = (),
    **more: Any,
) -> Case:
    """Return the case of a pod that is in c2, and does not run there."""

    def make(here: Situation) -> None:
        here.sent(status, **more)
        if event:
            here.event(*event)

    return Case(make, state, headline, cures, unsaid)


def pulled(message: str, cure: str, *unsaid: str) -> Case:
    status = waiting("ErrImagePull", message)
    return sent("container main: ErrImagePull", cure, status=status, unsaid=unsaid)
