"""Says what the clusters hold when a page of the documentation begins.

cluster1 and cluster2 run vnode, cluster3 has nothing of it. A script makes the rest, and may find
what an earlier run of the same page has left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vnode.api import names

NAMESPACE = "team-a"
CLUSTERS = ("cluster1", "cluster2", "cluster3")
KUBECONFIGS = {
    "source": "cluster1",
    "target": "cluster2",
    "middle": "cluster2",
    "leaf": "cluster3",
    "cluster": "cluster3",
    "karmada": "cluster3",
}

_CONNECTED = """
vnode connect --source source.kubeconfig --target target.kubeconfig \
  --namespace team-a --name gpu --enable-namespace
kubectl apply -f given.yaml
kubectl wait --for=condition=Ready target/gpu --timeout 60s
kubectl rollout status statefulset/web --timeout 60s
"""

_BARE = """
vnode uninstall --kubeconfig cluster.kubeconfig --delegates delete --crds
kubectl --kubeconfig cluster.kubeconfig delete namespace vnode admiralty --ignore-not-found
"""

# Until the API server lists them, kubectl knows no kind of CRDs that were just created.
_SERVED = """
until kubectl get clustersummaries,podchaperons --all-namespaces > /dev/null 2>&1; do
  sleep 0.2
done
"""

_INSTALLED = "vnode install --kubeconfig cluster.kubeconfig\n"


def _without(things: str, kubeconfig: str = "source") -> str:
    """Take away what another page needs to be absent, or this one makes by `kubectl create`."""
    return f"kubectl --kubeconfig {kubeconfig}.kubeconfig delete --ignore-not-found {things}\n"


_OF_KUEUE = "job/crunch clusterrolebinding/vnode-kueue clusterrolebinding/vnode-multikueue"
_THREE_TARGETS = (
    _CONNECTED
    + _INSTALLED.replace("cluster.kubeconfig", "source.kubeconfig")
    + "for name in berlin paris cloud; do\n"
    + "vnode connect --source source.kubeconfig --target target.kubeconfig "
    + "--namespace team-a --name $name --enable-namespace\n"
    + "kubectl wait --for=condition=Ready target/$name --timeout 60s\n"
    + "done\n"
)
_DECISIONS = "placementdecisions.cluster.open-cluster-management.io"
_WITHOUT_DECISIONS = _without("-f placementdecisions.yaml") + _without(
    "clusterrolebinding/vnode-decisions clusterrolebinding/vnode-published-decisions"
)
_DECIDED = (
    _WITHOUT_DECISIONS
    + "kubectl apply -f placementdecisions.yaml\n"
    + "kubectl wait --for=condition=Established -f placementdecisions.yaml\n"
    + "kubectl apply -f gpu-decision.yaml\n"
    + f"kubectl patch {_DECISIONS} gpu-decision-1 --subresource status --type merge"
    + """ -p '{"status": {"decisions": [{"clusterName": "paris", "reason": ""}]}}'\n"""
)
_WITHOUT_THREE_TARGETS = _without("target/berlin target/paris target/cloud")

_WITHOUT_PLACEMENTS = (
    _without("placementpolicy/train -n team-a")
    + _without("-f ocm.yaml")
    + _without("clusterrolebinding/vnode-decisions clusterrolebinding/vnode-managed-clusters")
    + _without("namespace/fleet namespace/berlin")
)
_FREE_PORT = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])"
_PLACED = (
    _WITHOUT_PLACEMENTS
    + "kubectl apply -f ocm.yaml\n"
    + "kubectl wait --for=condition=Established -f ocm.yaml\n"
    + "kubectl create namespace fleet\n"
    + "kubectl create namespace berlin\n"
    + "kubectl apply -f managedcluster.yaml\n"
    + f'port=$($python -c "{_FREE_PORT}")\n'
    + "placement controller --kubeconfig source.kubeconfig --namespace default "
    + "--disable-leader-election --listen 127.0.0.1:$port > placement.log 2>&1 &\n"
)

_WITHOUT_MUNICH = _without("target/munich target/munich-admin secret/munich-kubeconfig")
_WITHOUT_KARMADA = (
    _without("-f clusterprofiles.yaml")
    + _without("namespace/karmada role/karmada-profiles secret/karmada-berlin -n vnode")
    + _without("-f karmada.yaml", "karmada")
)


_WITHOUT_RELEASE = """
helm uninstall vnode --namespace vnode --ignore-not-found
kubectl delete namespace vnode --ignore-not-found
kubectl get crds -o name | grep -E 'multicluster.admiralty.io|vnode.dev' \\
  | xargs --no-run-if-empty kubectl delete
"""


@dataclass(frozen=True)
class StartingState:
    """`given` and `after` are scripts around a page; `inside` runs it beside its target's agent.

    `kubeconfigs` says which cluster a kubeconfig is of, where that is not as usual, and `programs`
    what the page needs that others do not.
    """

    given: str = _CONNECTED
    after: str = ""
    kubeconfigs: dict[str, str] = field(default_factory=dict)
    inside: bool = False
    programs: tuple[str, ...] = ()


STARTING_STATES = {
    "CONTRIBUTING.md": StartingState(given=""),
    "docs/testing.md": StartingState(given=""),
    "README.md": StartingState(
        _BARE
        + _without("deployment/web -n default")
        + "kubectl -n default create deployment web --image nginx",
        _without("deployment/web target/target -n default")
        + "kubectl wait --for=delete node/admiralty-default-target --timeout 60s",
        {"target": "cluster3"},
        inside=True,
    ),
    "docs/argo-workflows.md": StartingState(
        _CONNECTED
        + "kubectl apply -f argo.yaml\n"
        + "kubectl wait --for=condition=Established -f argo.yaml\n"
        + _without("rolebinding/vnode-token-minter"),
        after="kubectl annotate target gpu vnode.dev/service-account-tokens-\n"
        + _without("-f executor.yaml -f argo.yaml"),
    ),
    "docs/ci-runners.md": StartingState(
        _without("namespace/ci") + _without("namespace/ci", "target")
    ),
    "docs/cli.md": StartingState(_CONNECTED + _INSTALLED),
    "docs/configuration.md": StartingState(
        _without("clusterrolebinding/vnode-certificate-approver")
    ),
    "docs/connect.md": StartingState(
        _CONNECTED + _without("secret/lab-kubeconfig"), after=_without("target/here target/lab")
    ),
    "docs/dashboard.md": StartingState(_CONNECTED + _without("clusterrolebinding/look")),
    "docs/following.md": StartingState(
        _CONNECTED
        + _without("clusterrolebinding/source-namespaces", "target")
        + _without("rolebinding/vnode-token-minter"),
        after="kubectl annotate target gpu vnode.dev/service-account-tokens-"
        " vnode.dev/network-policies-",
    ),
    "docs/inventory-cluster-api.md": StartingState(
        _WITHOUT_MUNICH
        + "kubectl create secret generic munich-kubeconfig --type cluster.x-k8s.io/secret"
        + " --from-file value=target.kubeconfig",
        _WITHOUT_MUNICH,
    ),
    "docs/inventory-fleet.md": StartingState(
        _without("secret/member-tokens -n vnode"), _without("secret/member-tokens -n vnode")
    ),
    "docs/inventory-karmada.md": StartingState(
        _WITHOUT_KARMADA
        + "kubectl --kubeconfig karmada.kubeconfig apply -f karmada.yaml\n"
        + "kubectl --kubeconfig karmada.kubeconfig wait --for=condition=Established"
        + " crd/clusters.cluster.karmada.io\n"
        + "kubectl --kubeconfig karmada.kubeconfig apply -f karmada-members.yaml",
        _WITHOUT_KARMADA,
    ),
    "docs/inventory-ocm.md": StartingState(
        _THREE_TARGETS + _PLACED,
        _WITHOUT_PLACEMENTS + _WITHOUT_THREE_TARGETS,
        programs=("placement",),
    ),
    "docs/kueue.md": StartingState(
        _CONNECTED + _without(_OF_KUEUE),
        after=_without(_OF_KUEUE),
    ),
    "docs/install.md": StartingState(
        _BARE, kubeconfigs={"source": "cluster3", "target": "cluster3"}
    ),
    "docs/migration-from-admiralty.md": StartingState(
        _BARE
        + "helm install admiralty ./multicluster-scheduler -n admiralty --create-namespace\n"
        + _SERVED
        + "kubectl apply -f admiralty.yaml",
        kubeconfigs={"source": "cluster3", "target": "cluster3"},
    ),
    "docs/overrides.md": StartingState(
        _CONNECTED + _without("rolebinding/override-editors overridepolicy/mirror"),
        after=_without("rolebinding/override-editors overridepolicy/mirror"),
    ),
    "docs/migration-from-federation.md": StartingState(_THREE_TARGETS, _WITHOUT_THREE_TARGETS),
    "docs/placement.md": StartingState(
        _THREE_TARGETS + _DECIDED,
        _without("placementpolicy --all") + _WITHOUT_DECISIONS + _WITHOUT_THREE_TARGETS,
    ),
    "docs/scores.md": StartingState(
        _CONNECTED
        + _INSTALLED.replace("cluster.kubeconfig", "source.kubeconfig")
        + _without("clusterscore/price-gpu clusterrolebinding/vnode-scores"),
        _without("clusterscore/price-gpu clusterrolebinding/vnode-scores"),
    ),
    "docs/topologies.md": StartingState(
        _without("-f given.yaml") + _without("target/gpu") + _INSTALLED,
        _without("-f web.yaml") + _without("target --all") + _without("target --all", "middle"),
    ),
    "docs/upgrading.md": StartingState(
        _WITHOUT_RELEASE
        + "kubectl create namespace vnode\n"
        + "helm install vnode charts/vnode --namespace vnode --set clusterName=cluster1\n",
        after=_WITHOUT_RELEASE,
        kubeconfigs={"source": "cluster3", "target": "cluster3"},
    ),
    "docs/usage.md": StartingState(
        _without("clusterrole/kubelet-reader", "target")
        + _without("clusterrolebinding/cluster1-kubelet-reader", "target")
    ),
}
"""Pages that need more than a connection, or less."""

STANDS_FOR = {
    "POD": "web-1",
    "NODE": names.virtual_node(NAMESPACE, "gpu"),
    "NAMESPACE": NAMESPACE,
    "CHAPERON": "old",
}
"""What we write for what readers replace."""
