"""Names cures with the commands and flags of the cluster they are for. Pure.

`vnode install` repairs what it has installed, with its earlier flags; Helm repairs its releases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.cli import installed, manifests
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.installed import InstallSettings

_PORT = 9443  # the default port of an agent's webhook


def install(facts: ClusterFacts) -> str:
    """Return how to repair the objects of an installation."""
    command, left = installed.command(_settings(facts)), _release(facts.crds or ())
    if release := _release(_parts(facts)):
        command = installed.helm_upgrade(release)
    elif left:  # its CRDs stay when a release goes
        command = f"{installed.helm_upgrade(left)} (if helm list has it no more: {command})"

    return f"{command}, as an administrator of this cluster"


def reach(facts: ClusterFacts) -> str:
    """Return how to make the API server reach the agent's webhook."""
    settings, release = _settings(facts), _release(_parts(facts))
    place = settings.url or f"Service {settings.namespace}/{manifests.SERVICE}"
    if release:
        change = f"{installed.helm_upgrade(release)} --set webhook.url=https://HOST:PORT"
    else:
        change = installed.command(replace(settings, url="https://HOST:PORT"))

    return f"see that the API server reaches the agent at {place}; {change} points it elsewhere"


def _parts(facts: ClusterFacts) -> Objects:
    """Return the objects that are deleted with a Helm release."""
    return [*(facts.roles or ()), *([facts.webhook] if facts.webhook else ())]


def _release(found: Iterable[Object]) -> str:
    return next(filter(None, map(installed.own_release, found)), "")


def _settings(facts: ClusterFacts) -> InstallSettings:
    """Read the settings from the webhook; without it, guess them from the Service and nodes."""
    names = {objects.name(binding) for binding in facts.issuers or ()}
    self_targets = manifests.SELF_TARGETS in names
    if facts.webhook:
        return installed.read(facts.webhook, self_targets=self_targets)

    url = None if facts.has_service else f"https://{_address(facts) or 'HOST'}:{_PORT}"
    return InstallSettings(facts.namespace, url, self_targets=self_targets)


def _address(facts: ClusterFacts) -> str:
    """Return the agent's address, which its virtual nodes have; "" if there is none."""
    for node in facts.nodes:
        for entry in objects.status(node).get("addresses") or ():
            if entry.get("type") == "InternalIP":
                address = str(entry.get("address") or "")
                return f"[{address}]" if ":" in address else address

    return ""
