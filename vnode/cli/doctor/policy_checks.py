"""Checks whether placement and override policies are in force. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import objects
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level
from vnode.insight import policies


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Find policies that are not in force, or of which a part is not."""
    for obj in facts.placement_policies:
        shown = policies.shown(obj)
        name = f"{shown.name.partition('/')[0]}/{objects.key(obj)}"
        if not shown.is_accepted:
            text = f"{name} is not in force, and pods are placed as without it: {shown.message}"
            yield Finding(facts.name, "placement policy", Level.WARN, text, IN_THE_TEXT)
        elif wrong := policies.failure(obj):
            text = f"{name}: {wrong}"
            yield Finding(facts.name, "placement policy", Level.WARN, text, IN_THE_TEXT)

    for obj in facts.override_policies:
        override = policies.shown_override(obj)
        if not override.is_good:
            text = f"{override.name}: {override.state}: {override.message}"
            yield Finding(facts.name, "override policy", Level.WARN, text, IN_THE_TEXT)
