"""Annotations, labels, taints and other keys that vnode shares with its users and peers.

Those under `multicluster.admiralty.io/` are Admiralty's, spelt as its 0.17 has them; those under
`vnode.dev/` are ours. "Presence" means that the value is not read.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "multicluster.admiralty.io/"
OWN_PREFIX: Final = "vnode.dev/"

# Written by users.
WEBHOOK_NAMESPACE_LABEL: Final = ("multicluster-scheduler", "enabled")
ELECT: Final = PREFIX + "elect"  # pod or namespace; presence
NO_ELECT: Final = OWN_PREFIX + "no-elect"  # pod: not even if its namespace is elected; presence
NO_RESERVATION: Final = PREFIX + "no-reservation"  # presence
PROXY_CONSTRAINTS: Final = PREFIX + "proxy-pod-scheduling-constraints"  # YAML of a PodSpec
USE_SPEC_CONSTRAINTS: Final = PREFIX + "use-constraints-from-spec-for-proxy-pod-scheduling"
NO_PREFIX_LABEL_REGEXP: Final = PREFIX + "no-prefix-label-regexp"  # on "key=value"

# On a Service or Ingress: it goes to all targets of its namespace; on a Namespace: so do those that
# its elected pods are behind; and on copies: "true".
GLOBAL: Final = PREFIX + "global"
FORWARD: Final = OWN_PREFIX + "forward"  # pod: its delegates may be sent on; presence
NO_FOLLOW: Final = OWN_PREFIX + "no-follow"  # Service or Ingress: is not copied; presence
STORAGE_CLASSES: Final = OWN_PREFIX + "storage-classes"  # Target: claims follow; "from=to,..."
LOAD_BALANCER_CLASSES: Final = OWN_PREFIX + "load-balancer-classes"  # Target; "from=to,..."
INGRESS_CLASSES: Final = OWN_PREFIX + "ingress-classes"  # Target; "from=to,..."
FOLLOW_ANYWAY: Final = OWN_PREFIX + "follow-anyway"  # Target: annotations and fields that travel
LOAD_BALANCERS: Final = OWN_PREFIX + "load-balancers"  # Target: "true" or "false"
NETWORK_POLICIES: Final = OWN_PREFIX + "network-policies"  # Target: "follow" or "ignore"
PRIORITY_CLASSES: Final = OWN_PREFIX + "priority-classes"  # Target: class in it; "from=to,..."
TOKENS: Final = OWN_PREFIX + "service-account-tokens"  # Target: "target", "source=HOST:PORT"
RENEW_TOKEN: Final = OWN_PREFIX + "renew-token"  # Secret of a Target: life to ask for, "24h"
CREATE_NAMESPACES: Final = OWN_PREFIX + "create-namespaces"  # ClusterTarget; "true"
CREATE_SERVICE_ACCOUNTS: Final = OWN_PREFIX + "create-service-accounts"  # Target; "true"
SHOWN_LABELS: Final = OWN_PREFIX + "shown-labels"  # Target: keys that its Node has in any case
# Target: extended resources that its nodes have without listing them.
UNLISTED_RESOURCES: Final = OWN_PREFIX + "unlisted-resources"
NODE_POOLS: Final = OWN_PREFIX + "node-pools"  # Target: those that an autoscaler may grow
LABEL_DOMAINS: Final = OWN_PREFIX + "label-domains"  # Target: labels that its nodes may share
CONFIRM_CLUSTER: Final = OWN_PREFIX + "confirm-cluster"  # Target: UID that its cluster may have
PLACEMENT_POLICY: Final = OWN_PREFIX + "placement-policy"  # label of pods: its name
GANG: Final = OWN_PREFIX + "gang"  # pod: the name of its gang, see vnode.gangs.membership
GANG_MINIMUM: Final = OWN_PREFIX + "gang-minimum"  # pod: how many of its gang start together
CLUSTER_PLACEMENT_POLICY: Final = OWN_PREFIX + "cluster-placement-policy"  # label of pods: its name

# On a namespace of a target: ClusterSources that `vnode connect` has made hold there, by default.
CLUSTER_SOURCES: Final = (OWN_PREFIX + "cluster-sources", "enabled")

# Written by vnode.
SOURCE_POD_MANIFEST: Final = PREFIX + "sourcepod-manifest"
MANIFEST_SIGNATURE: Final = OWN_PREFIX + "manifest-signature"  # see vnode.api.saved_manifest
PUBLISHED_BY: Final = OWN_PREFIX + "published-by"  # on PlacementDecisions: the policy's UID
PUBLISHED_SCORES: Final = OWN_PREFIX + "published-scores"  # label of those objects; presence
CLUSTER_PROFILE: Final = OWN_PREFIX + "cluster-profile"  # on virtual nodes: namespace/name
CLUSTER_DISPLAY_NAME: Final = OWN_PREFIX + "cluster-display-name"  # annotation of virtual nodes
CLUSTER_PROPERTIES: Final = OWN_PREFIX + "cluster-properties"  # annotation of those: JSON
MEMBER_TAINTS: Final = OWN_PREFIX + "member-taints"  # annotation of those: JSON
NODE_NAME: Final = OWN_PREFIX + "node-name"  # label of virtual nodes: their own name
HIDDEN_LABELS: Final = OWN_PREFIX + "hidden-labels"  # annotation of those: JSON
CLUSTER_MANAGER: Final = OWN_PREFIX + "cluster-manager"  # label of virtual nodes
CLUSTER_SET: Final = OWN_PREFIX + "clusterset"  # likewise
CLUSTER_VERSION: Final = OWN_PREFIX + "cluster-version"  # likewise
CLUSTER_PROPERTY: Final = OWN_PREFIX + "property."  # likewise; its name follows, with _ for /
CLUSTER_QUANTITY: Final = OWN_PREFIX + "quantity."  # likewise, in whole base units
TOKEN: Final = OWN_PREFIX + "token"  # on Secrets with tokens of the source, and their chaperons
TOKEN_REFRESH: Final = OWN_PREFIX + "refresh-at"  # on those Secrets
TOKEN_NODE: Final = OWN_PREFIX + "token-node"  # on those Secrets: the node that the tokens name
HAS_FINALIZER: Final = PREFIX + "has-finalizer"
PARENT_UID: Final = PREFIX + "parent-uid"
PARENT_CLUSTER_NAME: Final = PREFIX + "parent-cluster-name"
PARENT_NAMESPACE: Final = PREFIX + "parent-namespace"
PARENT_NAME: Final = PREFIX + "parent-name"
IS_RESERVED: Final = PREFIX + "is-reserved"
IS_ALLOWED: Final = PREFIX + "is-allowed"
POD_MISSING_SINCE: Final = PREFIX + "pod-missing-since"
IS_DELEGATE: Final = PREFIX + "is-delegate"  # on copies of Services and Ingresses; presence
ORIGINAL_SELECTOR: Final = PREFIX + "original-selector"  # on a Service that Admiralty rerouted
TARGET_NAMESPACE: Final = PREFIX + "target-namespace"
TARGET_NAME: Final = PREFIX + "target-name"
CLUSTER_TARGET_NAME: Final = PREFIX + "cluster-target-name"

# The UID of kube-system in the source: an annotation; and a label of chaperons and delegates, which
# have it from their beginning or never. So a delegate has it if its chaperon does.
PARENT_CLUSTER_UID: Final = OWN_PREFIX + "parent-cluster-uid"
PATH: Final = OWN_PREFIX + "path"  # on pods sent on: UIDs of clusters, see vnode.api.route
TARGET: Final = OWN_PREFIX + "target"  # on chaperons: the Target (NAMESPACE/NAME) that led there
DELEGATE_FINALIZER: Final = OWN_PREFIX + "delegate"  # on chaperons: held until the delegate is gone
WORK_LEFT: Final = OWN_PREFIX + "work-left"  # on the agent's rights, see lasting_rights
SENT: Final = OWN_PREFIX + "sent"  # on chaperons and delegates: JSON, see vnode.pods.changes
# On chaperons that override policies have changed: their rules as JSON and its signature, see
# vnode.overrides.record; and what undoes them, see vnode.pods.overriding.
OVERRIDES: Final = OWN_PREFIX + "overrides"
OVERRIDES_SIGNATURE: Final = OWN_PREFIX + "overrides-signature"
OVERRIDDEN: Final = OWN_PREFIX + "overridden"
# On chaperons: JSON, what the source gave of annotations that the target reports otherwise, see
# vnode.pods.given_annotations.
REPORTED: Final = OWN_PREFIX + "reported"
# On chaperons of candidates: a digest of what was sent, see vnode.pods.source.candidate_forms.
FORM: Final = OWN_PREFIX + "form"
# On chaperons: who may speak for their source on a stream, see vnode.pods.stream_messages.
SOURCE_DIGEST: Final = OWN_PREFIX + "source-digest"
REFUSED: Final = OWN_PREFIX + "refused"  # on a chaperon: why its delegate was not changed
# On chaperons of gangs: JSON, see vnode.gangs.marks; and why the target makes way for another gang.
GANG_MARK: Final = OWN_PREFIX + "gang-mark"
GANG_REFUSED: Final = OWN_PREFIX + "gang-refused"
# On chaperons and delegates: ASKS or ALLOWED, see vnode.pods.preemption; and what the target's
# scheduler would preempt, as JSON.
PREEMPTION: Final = OWN_PREFIX + "preemption"
VICTIMS: Final = OWN_PREFIX + "victims"
# On chaperons: how often others were preempted for the pod, as JSON, see vnode.pods.preemption.
PREEMPTED: Final = OWN_PREFIX + "preempted"
# A scheduling gate of the pods that stand for delegates with the target's own scheduler.
NOMINATED: Final = OWN_PREFIX + "nominated"
# On chaperons: the delegates that kubelets have rejected, as JSON, see vnode.pods.rejections.
REJECTED: Final = OWN_PREFIX + "rejected"
FED_BACK: Final = OWN_PREFIX + "fed-back"  # on a proxy: JSON, see vnode.pods.annotation_merge
# On a proxy: JSON, see vnode.pods.conditions.
FED_BACK_CONDITIONS: Final = OWN_PREFIX + "fed-back-conditions"
# On chaperons: the delegate was deleted before it had finished, however it then ends; presence.
DELEGATE_DELETED: Final = OWN_PREFIX + "delegate-deleted"
# On chaperons: in how many seconds the delegate is to end, if not in its own grace period.
GRACE_PERIOD: Final = OWN_PREFIX + "grace-period-seconds"
# On chaperons and delegates, followed by more: what fields of the first proxy say, see
# vnode.pods.downward_api.
FIELD: Final = OWN_PREFIX + "field-"
FOLLOWED: Final = OWN_PREFIX + "followed"  # on copies: JSON, see vnode.following.copies
# On a followed Service or Ingress: JSON, see vnode.following.write_back_patches.
ADDRESSES: Final = OWN_PREFIX + "addresses"
AGENT_VERSION: Final = OWN_PREFIX + "agent-version"  # on a ClusterSummary: vnode wrote it
HEARTBEAT: Final = OWN_PREFIX + "heartbeat"  # on a ClusterSummary: RFC 3339, renewed every minute
KEPT: Final = OWN_PREFIX + "kept"  # on a ClusterSummary, see vnode.api.summary_reports
SCHEDULER_SILENT: Final = OWN_PREFIX + "candidate-scheduler-silent-since"
"""On a ClusterSummary, while that is so: RFC 3339, its last sign of life."""
CLUSTER_NAME: Final = OWN_PREFIX + "cluster-name"  # on a ClusterSummary: its agent's --cluster-name
CLUSTER_UID: Final = OWN_PREFIX + "cluster-uid"  # on a ClusterSummary: which cluster that is
FREE_RESOURCES: Final = OWN_PREFIX + "free"  # on a ClusterSummary: JSON, see vnode.nodes.capacity
ROWS: Final = OWN_PREFIX + "rows"  # likewise, see vnode.api.rows_text
USED_BY_SOURCES: Final = OWN_PREFIX + "used-by-sources"  # likewise, see vnode.api.source_usage
CLASSES: Final = OWN_PREFIX + "classes"  # on a ClusterSummary: JSON, see vnode.api.class_names
NODE_FEATURES: Final = OWN_PREFIX + "node-features"  # likewise, see vnode.api.node_features
STREAMS: Final = OWN_PREFIX + "streams"  # likewise: the namespace of the Service for streams
KUBELET_PORT: Final = OWN_PREFIX + "kubelet-port"  # on a virtual node: its port over restarts

# On a proxy that runs in another cluster than a placement policy planned: that one's virtual node.
OVERFLOWED_FROM: Final = OWN_PREFIX + "overflowed-from"
# On a proxy that was bound where all pods of its workload were being moved to then: why.
MOVED_TOGETHER: Final = OWN_PREFIX + "moved-together"
PLACED: Final = OWN_PREFIX + "placed"  # on a bound proxy: why there, if a policy says so
PLACEHOLDERS: Final = OWN_PREFIX + "placeholders"  # on a proxy, see vnode.api.placeholders
PLACEHOLDER: Final = OWN_PREFIX + "placeholder"  # on their chaperons: presence
# What the target's extender says of a placeholder that has found a node, and so its PodScheduled.
COULD_START: Final = "runs in another cluster and is a placeholder here: this cluster has room now"

# A condition of a proxy that was moved, and runs on until its replacement is ready.
AWAITS_REPLACEMENT: Final = OWN_PREFIX + "AwaitsReplacement"
# On a proxy: if its node is lost, vnode evicts it by its placement policy; presence.
FAILOVER: Final = OWN_PREFIX + "failover"
# A scheduling gate of a proxy that is to get what is preserved of the pod that it replaces; and on
# a proxy: the UID of that pod.
AWAITS_STATE: Final = OWN_PREFIX + "awaits-state"
PRESERVED_FROM: Final = OWN_PREFIX + "preserved-from"
# The taints of nodes that are lost.
NODE_FAILURES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
DELETION_COST: Final = OWN_PREFIX + "deletion-cost"  # on a proxy: the POD_DELETION_COST we set
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"  # read by ReplicaSets

# On an AuthTokenRequest: JSON, see vnode.api.authors; and its finalizer.
AUTHOR: Final = OWN_PREFIX + "author"
AUTHOR_SIGNATURE: Final = OWN_PREFIX + "author-signature"
ISSUED_TOKEN: Final = OWN_PREFIX + "issued-token"
# Labels of what was made for an AuthTokenRequest: its UID; and, followed by the UID of each that
# uses it, presence.
ISSUED: Final = OWN_PREFIX + "issued"
ISSUED_FOR: Final = "issued.vnode.dev/"
ISSUED_IN: Final = OWN_PREFIX + "issued-in"  # on a Secret: the UID of the cluster of its token

# On Targets that a TargetSet or ClusterTargetSet has made: its name (a label); and since when their
# profile is gone (RFC 3339). On a set: the generation whose removals are confirmed. On virtual
# nodes that were cordoned for that: presence.
TARGET_SET: Final = OWN_PREFIX + "target-set"
CLEAN_UP: Final = OWN_PREFIX + "clean-up"  # finalizer of a Target that a set deletes
PROFILE_GONE: Final = OWN_PREFIX + "profile-gone-since"
CONFIRM_REMOVAL: Final = OWN_PREFIX + "confirm-removal"
REMOVED_TARGETS: Final = OWN_PREFIX + "removed-targets"  # of a set, within the last minute
CORDONED_BY_SET: Final = OWN_PREFIX + "cordoned-by-target-set"

AGENT_INSTANCE: Final = OWN_PREFIX + "agent-instance"  # on a CSR: the process that made it
KUBELET_CERTIFICATE: Final = OWN_PREFIX + "KubeletCertificate"  # a condition of virtual nodes
MEMBER_TAINTS_SYNCED: Final = OWN_PREFIX + "MemberTaintsSynced"  # likewise

PROXY_SCHEDULER: Final = "admiralty-proxy"
PROXY_PODS: Final = f"spec.schedulerName={PROXY_SCHEDULER}"  # a field selector
CANDIDATE_SCHEDULER: Final = "admiralty-candidate"

PROVIDER_LABEL: Final = "virtual-kubelet.io/provider"
PROVIDER: Final = "admiralty"
PROVIDER_TAINT: Final = {"key": PROVIDER_LABEL, "value": PROVIDER, "effect": "NoSchedule"}
REAL_NODES: Final = f"{PROVIDER_LABEL}!={PROVIDER}"  # selects nodes that run containers

# Have Cilium's cluster mesh merge Services of one name: the older key, and the newer.
CILIUM_GLOBAL: Final = ("io.cilium/global-service", "service.cilium.io/global")

# Its labels, annotations and scheduling gates are about the queue that admitted a pod here.
KUEUE: Final = "kueue.x-k8s.io"
HAMI: Final = "hami.io/"  # what begins the annotations by which it chooses devices
PLACEMENT_CHECK: Final = OWN_PREFIX + "placement"  # the controller of AdmissionChecks of ours
# On pods of a Workload that such a check has let in: its name, and that of the pod set, with a /.
KUEUE_WORKLOAD: Final = OWN_PREFIX + "kueue-workload"
# Labels and annotations by which pods name PodGroups of coscheduling and of Volcano.
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
NEVER_REJECT: Final = OWN_PREFIX + "never-reject"  # on an AdmissionCheck; presence
MULTIKUEUE: Final = OWN_PREFIX + "multikueue"  # label of MultiKueue objects of ours; presence

# Open Cluster Management's: of a virtual node, by its profile; and of a PlacementDecision.
OCM_CLUSTER_NAME: Final = "open-cluster-management.io/cluster-name"
OCM_PLACEMENT: Final = "cluster.open-cluster-management.io/placement"
OCM_DECISION_GROUP: Final = "cluster.open-cluster-management.io/decision-group-index"

# SIG Multicluster's, on the slices of a PlacementDecision: which belong together, and their order.
DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"

SUMMARY_NAME: Final = "singleton"
SERVICE_ACCOUNT_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def not_enabled(namespace: str) -> str:
    """Return the message for users of a namespace without WEBHOOK_NAMESPACE_LABEL."""
    label = "=".join(WEBHOOK_NAMESPACE_LABEL)
    return (
        f"namespace {namespace} does not have the label {label}, which a cluster administrator sets"
    )


def is_foreign(key: str) -> bool:
    """Tell whether a key is neither Admiralty's nor ours: such keys travel between clusters."""
    return not key.startswith((PREFIX, OWN_PREFIX))


def travels(key: str) -> bool:
    """Tell whether an annotation goes to targets: not ours, nor for queues or groups here."""
    is_kept = key == POD_DELETION_COST or key in VOLCANO_GROUPS
    return is_foreign(key) and not is_kept and not is_of_queue(key)


def is_of_queue(key: str) -> bool:
    """Tell whether Kueue has admitted a pod by this label, annotation or scheduling gate."""
    domain = key.partition("/")[0]
    return domain == KUEUE or domain.endswith("." + KUEUE)
