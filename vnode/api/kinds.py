"""The kinds of objects that vnode works with, and their paths in the API.

Names in a path may come from other clusters, and from users. So each is checked and quoted here,
where all paths to objects are built: no name leads to another object than the one of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final
from urllib.parse import quote

from vnode.api.errors import Invalid

_SEGMENT: Final = re.compile(r"(?!\.{1,2}\Z)[!-~]+")  # of a path, with what `_SPECIAL` has not
_SPECIAL: Final = frozenset("/%?#\\")


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API; `path` gives its addresses."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `group/version` for all others."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The resource's full name as RBAC and CRDs have it: `plural.group`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path of the collection, an object, or a subresource of it.

        A namespaced kind without a namespace means all namespaces. Raises Invalid, as the API
        server would, for what cannot be a name: an empty one would address the whole collection.
        """
        parts = ["/api" if not self.group else f"/apis/{self.group}", self.version]
        if self.namespaced and (namespace or name is not None):
            parts += ["namespaces", self._segment("namespace", namespace or "")]

        parts.append(self.plural)
        if name is not None:
            parts.append(self._segment("name", name))

        if subresource is not None:
            parts.append(self._segment("subresource", subresource))

        return "/".join(parts)

    def _segment(self, field: str, text: str) -> str:
        if not _SEGMENT.fullmatch(text) or _SPECIAL.intersection(text):
            raise Invalid(
                400, "BadRequest", f"{text[:253]!r} cannot be the {field} of a {self.kind}"
            )

        return quote(text, safe=":")


@cache
def of_cluster(kind: Kind) -> Kind:
    """Return the cluster-scoped sibling of a namespaced kind: Cluster... by its name."""
    plural, name = f"cluster{kind.plural}", f"Cluster{kind.kind}"
    return replace(kind, plural=plural, kind=name, namespaced=False)


def scoped(kind: Kind, namespace: str) -> Kind:
    """Return the namespaced kind, or its cluster-scoped sibling if there is no namespace."""
    return kind if namespace else of_cluster(kind)


MULTICLUSTER: Final = "multicluster.admiralty.io"
INVENTORY: Final = "multicluster.x-k8s.io"
OCM: Final = "cluster.open-cluster-management.io"
VNODE: Final = "vnode.dev"
KUEUE: Final = "kueue.x-k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
NODES: Final = Kind("", "v1", "nodes", "Node", namespaced=False)
PODS: Final = Kind("", "v1", "pods", "Pod")
SECRETS: Final = Kind("", "v1", "secrets", "Secret")
CONFIG_MAPS: Final = Kind("", "v1", "configmaps", "ConfigMap")
SERVICES: Final = Kind("", "v1", "services", "Service")
SERVICE_ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS: Final = Kind("", "v1", "events", "Event")
ENDPOINT_SLICES: Final = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
INGRESSES: Final = Kind("networking.k8s.io", "v1", "ingresses", "Ingress")
NETWORK_POLICIES: Final = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
RESOURCE_QUOTAS: Final = Kind("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES: Final = Kind("", "v1", "limitranges", "LimitRange")
LEASES: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS: Final = Kind("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS: Final = Kind("apps", "v1", "daemonsets", "DaemonSet")
REPLICA_SETS: Final = Kind("apps", "v1", "replicasets", "ReplicaSet")
JOBS: Final = Kind("batch", "v1", "jobs", "Job")
CRON_JOBS: Final = Kind("batch", "v1", "cronjobs", "CronJob")
ROLES: Final = Kind(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS: Final = Kind(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES: Final = of_cluster(ROLES)
CLUSTER_ROLE_BINDINGS: Final = of_cluster(ROLE_BINDINGS)
CRDS: Final = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
CLUSTER_PROFILES: Final = Kind(INVENTORY, "v1alpha1", "clusterprofiles", "ClusterProfile")
PLACEMENT_DECISIONS: Final = Kind(INVENTORY, "v1alpha1", "placementdecisions", "PlacementDecision")
OCM_PLACEMENT_DECISIONS: Final = Kind(OCM, "v1beta1", "placementdecisions", "PlacementDecision")
MANAGED_CLUSTERS: Final = Kind(OCM, "v1", "managedclusters", "ManagedCluster", namespaced=False)
ADDON_PLACEMENT_SCORES: Final = Kind(OCM, "v1alpha1", "addonplacementscores", "AddOnPlacementScore")
ADMISSION_CHECKS: Final = Kind(
    KUEUE, "v1beta2", "admissionchecks", "AdmissionCheck", namespaced=False
)
WORKLOADS: Final = Kind(KUEUE, "v1beta2", "workloads", "Workload")
RESOURCE_FLAVORS: Final = Kind(
    KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False
)
MULTIKUEUE_CLUSTERS: Final = Kind(
    KUEUE, "v1beta2", "multikueueclusters", "MultiKueueCluster", namespaced=False
)
MULTIKUEUE_CONFIGS: Final = Kind(
    KUEUE, "v1beta2", "multikueueconfigs", "MultiKueueConfig", namespaced=False
)
COSCHEDULING_GROUPS: Final = Kind("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
VOLCANO_GROUPS: Final = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
# Kubernetes' own, newest first: an API server serves one of them, or none.
NATIVE_GROUPS: Final = tuple(
    Kind("scheduling.k8s.io", version, "podgroups", "PodGroup")
    for version in ("v1", "v1beta1", "v1alpha3", "v1alpha2")
)
MUTATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_POLICIES: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
VALIDATING_POLICY_BINDINGS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
CSRS: Final = Kind(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
    namespaced=False,
)
TOKEN_REVIEWS: Final = Kind(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Kind(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
RUNTIME_CLASSES: Final = Kind(
    "node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False
)
PRIORITY_CLASSES: Final = Kind(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
RESOURCE_CLAIMS: Final = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES: Final = Kind(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)
DEVICE_CLASSES: Final = Kind(
    "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False
)
POD_DISRUPTION_BUDGETS: Final = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
POD_METRICS: Final = Kind("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
NODE_METRICS: Final = Kind("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)

TARGETS: Final = Kind(MULTICLUSTER, "v1alpha1", "targets", "Target")
CLUSTER_TARGETS: Final = of_cluster(TARGETS)
SOURCES: Final = Kind(MULTICLUSTER, "v1alpha1", "sources", "Source")
CLUSTER_SOURCES: Final = of_cluster(SOURCES)
POD_CHAPERONS: Final = Kind(MULTICLUSTER, "v1alpha1", "podchaperons", "PodChaperon")
CLUSTER_SUMMARIES: Final = Kind(
    MULTICLUSTER, "v1alpha1", "clustersummaries", "ClusterSummary", namespaced=False
)
PLACEMENT_POLICIES: Final = Kind(VNODE, "v1alpha1", "placementpolicies", "PlacementPolicy")
CLUSTER_PLACEMENT_POLICIES: Final = of_cluster(PLACEMENT_POLICIES)
REBALANCES: Final = Kind(VNODE, "v1alpha1", "rebalances", "Rebalance")
AUTH_TOKEN_REQUESTS: Final = Kind(VNODE, "v1alpha1", "authtokenrequests", "AuthTokenRequest")
CLUSTER_SCORES: Final = Kind(VNODE, "v1alpha1", "clusterscores", "ClusterScore", namespaced=False)
TARGET_SETS: Final = Kind(VNODE, "v1alpha1", "targetsets", "TargetSet")
CLUSTER_TARGET_SETS: Final = of_cluster(TARGET_SETS)

OVERRIDE_POLICIES: Final = Kind(VNODE, "v1alpha1", "overridepolicies", "OverridePolicy")
CLUSTER_OVERRIDE_POLICIES: Final = of_cluster(OVERRIDE_POLICIES)

FOLLOWING: Final = (
    CONFIG_MAPS,
    SECRETS,
    SERVICES,
    INGRESSES,
    SERVICE_ACCOUNTS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    NETWORK_POLICIES,  # last: they hold for pods that have not ended yet
)
"""Kinds that follow pods, and whose copies go with their Target and with vnode.

The families of `vnode.following.following` carry them; a unit test compares."""

FOLLOWING_BY_EXTRA_ROLE: Final = frozenset({SERVICE_ACCOUNTS, NETWORK_POLICIES})
"""Those of FOLLOWING for which a source needs a role that it does not have by default."""

FOLLOWING_WHERE_POSSIBLE: Final = FOLLOWING_BY_EXTRA_ROLE | {
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
}
"""Those of FOLLOWING that a target may not serve, being too old, or not let a source list, since an
older release made its roles or a role is missing: then the source has made none there."""
