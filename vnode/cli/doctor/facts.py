"""Holds what was read of a cluster, and of a connection. None means: could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.cli import manifests
from vnode.cli.neighbours.own_objects import OwnObjects
from vnode.targets.expiry import CredentialExpiry, Renewal
from vnode.targets.profiles.profile_references import ProfileReference

_YOUNG: Final = timedelta(seconds=30)  # for an agent to look at a new object


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The namespaces to which the agent is held, by the webhook configuration.

    `left_out` have the label of those that take part, and are not named; `missing` do not exist,
    and in those that are `closed` the agent has no rights.
    """

    named: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One cluster, as its administrator's credentials see it.

    `unreachable` says why nothing else is known. `skew` is in seconds, positive where its clock is
    ahead of ours. `admission` says why a trial pod was not elected, "" if it was; `refused_trial`
    why none could be created; `serving` is the expiry of the webhook's certificate. `has_service`
    says whether the agent's namespace has the Service that the webhook calls where agents run in
    the cluster.
    """

    name: str
    now: datetime
    namespace: str = manifests.NAMESPACE
    has_service: bool = False
    unreachable: str = ""
    uid: str = ""
    version: str = ""
    skew: float | None = None
    crds: Objects | None = None
    roles: Objects | None = None
    policies: Objects | None = None  # for the agent's account; None also where there are none
    agent_lease: Object | None = None
    scheduler_lease: Object | None = None
    may_read_leases: bool = False
    waiting: Objects = field(default_factory=list)  # candidates that no scheduler has looked at
    placed: Objects = field(default_factory=list)  # candidates that a scheduler has looked at
    webhook: Object | None = None
    webhook_denied: bool = False
    serving: datetime | None = None
    admission: str | None = None
    refused_trial: str = ""
    targets: Objects = field(default_factory=list)
    sources: Objects = field(default_factory=list)
    nodes: Objects = field(default_factory=list)
    kubelets: dict[str, str] = field(default_factory=dict)  # virtual node -> "" or why not
    summary: Object | None = None
    chaperons: Objects = field(default_factory=list)
    token_requests: Objects | None = None  # None also where their CRD is missing
    issuers: Objects | None = None  # ClusterRoleBindings
    target_sets: Objects = field(default_factory=list)  # TargetSets and ClusterTargetSets
    placement_policies: Objects = field(default_factory=list)  # of both kinds
    override_policies: Objects = field(default_factory=list)  # likewise
    own: OwnObjects = field(default_factory=OwnObjects)  # of a source
    unplaced: Objects = field(default_factory=list)  # proxy pods without a node
    outside: list[str] = field(default_factory=list)
    """Pods that ask to be sent, in namespaces that do not take part."""
    finalized: list[str] = field(default_factory=list)  # `kind/namespace/name`, by Admiralty
    scope: ScopeFacts | None = None  # None where the agent has rights in all namespaces

    def is_young(self, obj: Object) -> bool:
        """Tell whether an object is so new that no agent need have looked at it."""
        created = objects.created_at(obj)
        skew = timedelta(seconds=self.skew or 0)
        return created is not None and self.now + skew - created < _YOUNG

    def is_bound(self, role: str) -> bool | None:
        """Tell whether somebody is bound to a ClusterRole; None if that may not be read."""
        if self.issuers is None:
            return None

        return any(
            binding.get("subjects") and (binding.get("roleRef") or {}).get("name") == role
            for binding in self.issuers
        )


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """The ClusterProfile of a Target, and what came of its provider and plugin here.

    Without the agent's configuration `provider` is "", and nothing was tried. `profile` is what a
    set remembers, if it is gone; `failure` says so.
    """

    reference: ProfileReference
    failure: str = ""  # why there is no profile
    profile: Object | None = None
    refusal: str = ""  # why no provider is taken
    provider: str = ""
    plugin_failure: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """One Target, and its cluster as the Target's own credentials see it.

    `rights` says for `verb resource` whether they allow it.
    """

    target: Object
    now: datetime
    end: CredentialExpiry | None = None
    invalid: str = ""  # why the kubeconfig cannot be used
    failure: str = ""  # why the cluster does not answer, or refuses
    renewal: Renewal | None = None  # what the agent does about the end; None if nothing
    skew: float | None = None
    rights: dict[str, bool] = field(default_factory=dict)
    granted: dict[str, bool] = field(default_factory=dict)
    """For a ClusterTarget that may not run pods everywhere: whether it may, by namespace of the
    source that takes part."""
    namespace_labels: dict[str, str] | None = None  # of the source's namespace
    summary: Object | None = None
    summary_missing: bool = False
    node: Object | None = None
    profile: ProfileFacts | None = None  # if the Target has one
    tried: bool = True  # False if there were no credentials to try
