"""Decodes which decision a policy follows, and whether it publishes its own, strictly.

`decoding` reads the rest of a policy. Each error names the field, and the cure.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, names
from vnode.api.errors import ConfigError
from vnode.placement.policies.move_fields import PolicySpecPart
from vnode.planning.cluster_decision import (
    ClusterDecision,
    DecisionKind,
    DecisionReference,
    Publishing,
)

_GROUPS: Final = {
    DecisionKind.PLACEMENT_DECISION: kinds.INVENTORY,
    DecisionKind.PLACEMENT: kinds.OCM,
}
LONGEST_NAME: Final = 63
"""Characters of the name of a published decision, which is the value of a label."""

_PUBLISH: Final = "spec.publish"
_REF: Final = "spec.clusters.decisionRef"


class DecisionRefSpec(PolicySpecPart, frozen=True):
    """`decisionRef` of a policy."""

    api_group: str
    kind: str
    name: str
    namespace: str = ""


class PublishSpec(PolicySpecPart, frozen=True):
    """`publish` of a policy."""

    name: str = ""
    namespace: str = ""


def decision(spec: DecisionRefSpec | None, namespace: str) -> ClusterDecision | None:
    """Return the decision that a policy of that namespace follows, which is not read yet.

    Raises ConfigError.
    """
    if spec is None:
        return None

    found = [
        kind
        for kind, group in _GROUPS.items()
        if (kind.value, group) == (spec.kind, spec.api_group)
    ]
    if not found:
        raise ConfigError(
            f"{_REF}: {spec.kind!r} of {spec.api_group!r} cannot be followed: name a "
            + " or a ".join(f"{kind.value} of {group}" for kind, group in _GROUPS.items())
        )

    home = _home(spec.namespace, namespace, _REF)
    if not names.SUBDOMAIN.fullmatch(spec.name):
        raise ConfigError(f"{_REF}.name: {spec.name!r} is no name of an object")

    reference = DecisionReference(found[0], home, spec.name)
    return ClusterDecision(reference, problem=f"{reference} is not known yet", is_known=False)


def publishing(spec: PublishSpec | None, policy: str, namespace: str) -> Publishing | None:
    """Return where a policy of that name and namespace publishes. Raises ConfigError."""
    if spec is None:
        return None

    name = spec.name or policy
    if len(name) > LONGEST_NAME or not names.SUBDOMAIN.fullmatch(name):
        raise ConfigError(
            f"{_PUBLISH}.name: {name!r} cannot be the name of a decision: give one of at most "
            f"{LONGEST_NAME} characters, as the value of a label"
        )

    return Publishing(_home(spec.namespace, namespace, _PUBLISH), name)


def _home(given: str, namespace: str, where: str) -> str:
    """Return the namespace that counts: a PlacementPolicy has no business in another one."""
    home = given or namespace
    if not home:
        raise ConfigError(f"{where}.namespace is missing: a ClusterPlacementPolicy has to say it")

    if namespace and home != namespace:
        raise ConfigError(
            f"{where}.namespace is {home!r}: a PlacementPolicy has its own namespace only; leave "
            "it out, or use a ClusterPlacementPolicy"
        )

    if not names.LABEL.fullmatch(home):
        raise ConfigError(f"{where}.namespace: {home!r} is no name of a namespace")

    return home
