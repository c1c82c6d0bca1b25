"""What `make bench-policies` measures, the aims it is held to, and the tables of both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tests.bench.figures import Aim, Quantiles, quantiles
from tests.bench.report import aim, grid
from vnode.api import objects
from vnode.api.objects import Object

SAME = 1.5
"""Medians of some fifty starts that differ by less are the same on a machine with other work."""
BEFORE, CREATED, PATCHED, AFTER = "before", "policies created", "one policy patched", "after"


class LongestCallback(msgspec.Struct, frozen=True):
    """The longest callback of the agent's event loop, in seconds of its thread's CPU time."""

    longest: float
    """Collections of garbage aside; 0 if none was long enough to be written down."""
    with_collections: float
    """The longest with the collections that fell into it."""
    what: str
    """The task or function that took longest."""


class PolicyStage(msgspec.Struct, frozen=True):
    """A while in which pods of a bystander were started, one after the other."""

    name: str
    seconds: float
    patches: int
    in_force: int
    """Policies of the tenant, at the end."""
    starts: Quantiles
    """Seconds from a pod's creation until it runs, in a namespace that has no policies."""
    answers: Quantiles
    """Seconds until the agent has answered whether it is healthy."""
    blocks: LongestCallback
    cpu: float
    """CPU seconds of the source's agent."""


class PolicyChanges(msgspec.Struct, frozen=True):
    """Changes of one policy of many: CPU seconds of each, and what there was."""

    pods: int
    policies: int
    namespaces: int
    cpu: Quantiles


class PoliciesRun(msgspec.Struct, frozen=True):
    """One run of the benchmark."""

    started: str
    cores: int
    python: str
    vnode: str
    pods: int
    policies: int
    stages: list[PolicyStage]
    changes: PolicyChanges

    def stage(self, name: str) -> PolicyStage:
        """Return the stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def aims(self) -> list[Aim]:
        """What the project promises itself."""
        before, patched, after = map(self.stage, (BEFORE, PATCHED, AFTER))
        usual = (before.starts.p50 + after.starts.p50) / 2  # the machine may have more to do now
        one_change = 1000 * self.changes.cpu.p90
        return [
            *(
                Aim(f"{one.name}: longest callback, ms", 50, 1000 * one.blocks.longest, most=True)
                for one in self.stages
                if one is not before
            ),
            Aim(
                f"{PATCHED}: a bystander's start, of the usual",
                SAME,
                patched.starts.p50 / usual,
                True,
            ),
            Aim(f"{PATCHED}: policies in force", self.policies, patched.in_force, most=False),
            Aim("a change of one of many policies, p90, ms of CPU", 20, one_change, most=True),
        ]


def is_accepted(policy: Object) -> bool:
    """Tell whether the agent has said that a policy is in force."""
    return (objects.condition(policy, "Accepted") or {}).get("status") == "True"


def blocks(callbacks: Iterable[Mapping[str, Any]]) -> LongestCallback:
    """Sum up what the meter of an event loop has written down (`tests.fuzz.measuring`)."""
    found = [(each["seconds"] - each["collecting"], each) for each in callbacks]
    if not found:
        return LongestCallback(0.0, 0.0, "")

    longest, what = max(found, key=lambda pair: pair[0])
    most = max(each["seconds"] for _, each in found)
    return LongestCallback(round(longest, 4), round(most, 4), str(what["what"])[:200])


def changes(pods: int, policies: int, namespaces: int, seconds: list[float]) -> PolicyChanges:
    """Sum up the CPU seconds of single changes."""
    return PolicyChanges(pods, policies, namespaces, quantiles(seconds))


def text(run: PoliciesRun) -> str:
    """Return all that is worth reading of a run."""
    many = run.changes
    head = ("", "p50", "p90", "p99", "longest")
    parts = [
        f"vnode {run.vnode}, Python {run.python}, {run.cores} cores, {run.started}",
        f"{run.pods} pods and {run.policies} costly policies of one namespace, and a bystander",
        grid(
            (
                "",
                "callback ms",
                "with gc ms",
                "start p50 s",
                "longest",
                "healthz p50 s",
                "longest",
                "cores",
                "patches/s",
            ),
            map(_stage, run.stages),
        ),
        *(
            f"{one.name}: the longest was {one.blocks.what}"
            for one in run.stages
            if one.blocks.what
        ),
        f"CPU ms of a change, of {many.policies} policies in {many.namespaces} namespaces",
        grid(head, [["", *(f"{1000 * s:.1f}" for s in msgspec.structs.astuple(many.cpu))]]),
        grid(("aim", "limit", "measured", ""), map(aim, run.aims)),
    ]
    return "\n\n".join(parts) + "\n"


def _stage(one: PolicyStage) -> list[str]:
    return [
        one.name,
        f"{1000 * one.blocks.longest:.1f}",
        f"{1000 * one.blocks.with_collections:.1f}",
        f"{one.starts.p50:.3f}",
        f"{one.starts.max:.3f}",
        f"{one.answers.p50:.3f}",
        f"{one.answers.max:.3f}",
        f"{one.cpu / one.seconds:.2f}",
        f"{one.patches / one.seconds:.1f}",
    ]
