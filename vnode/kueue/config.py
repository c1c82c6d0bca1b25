"""The part of the agent's configuration that is about a Kueue of its cluster."""

from __future__ import annotations

from typing import Literal

import msgspec

from vnode.api import names
from vnode.api.errors import ConfigError
from vnode.planning.cluster_decision import DecisionKind, DecisionReference


class FollowedDecisionRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision of a fleet manager, which says the order as well."""

    kind: Literal["PlacementDecision", "Placement"]
    namespace: str
    name: str

    @property
    def reference(self) -> DecisionReference:
        """The decision, as placement policies name it."""
        return DecisionReference(DecisionKind(self.kind), self.namespace, self.name)


class MultiKueueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One MultiKueueConfig, and where its clusters come from: one of three."""

    name: str
    targets: tuple[str, ...] = ()
    """ClusterTargets, or Targets as NAMESPACE/NAME, in this order."""
    target_set: str = ""
    """A ClusterTargetSet, whose ClusterTargets are taken by name."""
    decision_ref: FollowedDecisionRef | None = None
    """A decision, which also says the order."""
    access: Literal["Secret", "ClusterProfile"] = "Secret"
    """How Kueue gets at a cluster: by a Secret of its name, or by the Target's ClusterProfile."""

    def check(self) -> None:
        """Raise ConfigError, with the cure, if it names nothing, or too much."""
        where = f"kueue.multiKueue: {self.name or 'an entry without a name'}"
        if not names.SUBDOMAIN.fullmatch(self.name):
            raise ConfigError(f"{where}: name has to be that of a MultiKueueConfig")

        if sum(map(bool, (self.targets, self.target_set, self.decision_ref))) != 1:
            raise ConfigError(f"{where}: name either targets, or a targetSet, or a decisionRef")

        if len(set(self.targets)) < len(self.targets):
            raise ConfigError(f"{where}: targets names one of them twice")

        ref = self.decision_ref
        if ref and not all(map(names.SUBDOMAIN.fullmatch, (ref.namespace, ref.name))):
            raise ConfigError(f"{where}: decisionRef needs the namespace and name of an object")


class KueueConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is done for a Kueue of this cluster; it takes rights of its own, `vnode-kueue`."""

    placement_check: bool = False
    """Whether AdmissionChecks whose controller is `vnode.dev/placement` are answered."""
    allocatable_without_others: bool = False
    """Whether what others use in a target is left out of its virtual node's allocatable."""
    multi_kueue: tuple[MultiKueueEntry, ...] | None = None
    """The MultiKueueConfigs that are kept, with the rights `vnode-multikueue`; none (`[]`) has
    those removed that were kept, null leaves them."""

    def check(self) -> None:
        """Raise ConfigError if an entry is wrong, or two have one name."""
        entries = self.multi_kueue or ()
        for entry in entries:
            entry.check()

        if len({entry.name for entry in entries}) < len(entries):
            raise ConfigError("kueue.multiKueue: two entries have one name")
