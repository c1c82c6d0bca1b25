"""Checks the namespaces to which an agent is held: what is named, and what somebody expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import keys, objects
from vnode.cli.doctor import cures
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level

_CHECK: Final = "namespaces"
_NAME_IT: Final = (
    "name it in vnode install --namespaces, or the chart's value namespaces, and in the agent's "
    "configuration"
)


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings where the agent is held to namespaces, none elsewhere."""
    scope = facts.scope
    if scope is None:
        return

    label = "=".join(keys.WEBHOOK_NAMESPACE_LABEL)
    for name in scope.left_out:
        text = (
            f"{name} has the label {label}, and the agent is not held to it: its pods are ordinary "
            "pods, whatever they ask for"
        )
        yield Finding(facts.name, _CHECK, Level.WARN, text, f"{_NAME_IT}; or take the label off")

    for name in scope.missing:
        text = f"{name} is named, and does not exist"
        cure = f"create it, then {cures.install(facts)}; or name it no more"
        yield Finding(facts.name, _CHECK, Level.WARN, text, cure)

    for name in scope.closed:
        text = f"{name} is named, and the agent has no rights there (rolebinding/{name}/vnode)"
        yield Finding(facts.name, _CHECK, Level.FAIL, text, cures.install(facts))

    for target in facts.targets:
        namespace = objects.namespace(target)
        if namespace and namespace not in scope.named:
            text = f"target {objects.key(target)} is served by nobody: the agent may not read it"
            yield Finding(facts.name, _CHECK, Level.FAIL, text, f"{_NAME_IT}; or delete the Target")

    if not (scope.left_out or scope.missing or scope.closed):
        text = f"the agent is held to {', '.join(scope.named)}"
        yield Finding(facts.name, _CHECK, Level.OK, text)
