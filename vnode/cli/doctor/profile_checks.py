"""Checks the ClusterProfile of a Target, its provider and its plugin. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import objects
from vnode.cli.doctor.facts import ProfileFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level
from vnode.targets.profiles import describing, resolving

_CONFIG = "vnode doctor --config FILE, with the agent's configuration"


def check(place: str, facts: ProfileFacts) -> Iterator[Finding]:
    """Yield findings in the order in which an agent gets at a profile's cluster."""
    name = facts.reference.object_key
    if facts.failure and facts.profile is None:
        yield Finding(place, "profile", Level.FAIL, facts.failure, IN_THE_TEXT)
        return

    profile = facts.profile or {}
    condition = objects.condition(profile, describing.CONTROL_PLANE) or {}
    if facts.failure:
        text = f"{facts.failure}; its last status counts until its set deletes the Target"
        yield Finding(place, "profile", Level.WARN, text, "vnode get targetsets -o wide says more")
    elif condition.get("status") == "False":
        text = f"{name}: the inventory says that the control plane does not work: "
        text += str(condition.get("message") or condition.get("reason"))
        cure = "see that cluster; vnode uses its own probes"
        yield Finding(place, "profile", Level.WARN, text, cure)
    else:
        yield Finding(place, "profile", Level.OK, f"{name} is there")

    if facts.refusal:
        yield Finding(place, "provider", Level.FAIL, facts.refusal, IN_THE_TEXT)
    elif facts.provider:
        text = f"the agent takes {facts.provider!r}"
        yield Finding(place, "provider", Level.OK, text)
    else:
        offered = resolving.offered(profile)
        if not offered:
            text, cure = "it offers no access", "its cluster manager writes status.accessProviders"
            yield Finding(place, "provider", Level.FAIL, text, cure)
            return

        text = f"it offers {', '.join(sorted(offered))}; what the agent knows: {_CONFIG}"
        yield Finding(place, "provider", Level.SKIP, text)

    if facts.plugin_failure:
        text = f"on this machine: {facts.plugin_failure}"
        cure = "see that the agent's image has the plugin, and what it reads"
        yield Finding(place, "plugin", Level.FAIL, text, cure)
    elif facts.provider:
        yield Finding(place, "plugin", Level.OK, "it gives credentials on this machine")
    else:
        yield Finding(place, "plugin", Level.SKIP, f"to run it here: {_CONFIG}")
