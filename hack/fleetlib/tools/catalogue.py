"""Which programs a fleet needs, their versions, and where each may come from.

A new program is one more `Tool` here; one that few need is got `on_request`.
"""

from __future__ import annotations

import re

from hack.fleetlib.tools import kubernetes
from hack.fleetlib.tools.definitions import Module, Release, Tool

KUBERNETES = kubernetes.DEFAULT
ETCD = "3.6.16"
KWOK = "0.8.0"
METRICS_SERVER = "0.9.0"
HELM = "3.22.0"
COREDNS = "1.14.7"
PROMETHEUS = "3.15.0"
CLUSTER_INVENTORY = "0.1.2"
MANAGED_SERVICE_ACCOUNT = "0.10.0"
OPEN_CLUSTER_MANAGEMENT = "1.2.1"
KUEUE = "0.19.2"
JOBSET = "0.12.0"
LEADER_WORKER_SET = "0.9.0"
MPI_OPERATOR = "0.8.2"
TRAINER = "2.3.0"
KUBERAY = "1.6.2"
SPARK_OPERATOR = "2.5.2"
SCHEDULER_PLUGINS = "0.34.7"
KREW = "0.4.3"


_ETCD_RELEASE = "https://github.com/etcd-io/etcd/releases/download/v{version}"
_ETCD_NAME = "etcd-v{version}-{os}-{arch}"
_COREDNS_RELEASE = "https://github.com/coredns/coredns/releases/download/v{version}"
_COREDNS_ARCHIVE = "coredns_{version}_{os}_{arch}.tgz"
_PROMETHEUS_RELEASE = "https://github.com/prometheus/prometheus/releases/download/v{version}"
_PROMETHEUS_NAME = "prometheus-{version}.{os}-{arch}"

CLUSTER_INVENTORY_MODULE = Module("sigs.k8s.io/cluster-inventory-api", f"v{CLUSTER_INVENTORY}")
"""Has the ClusterProfile CRD, and plugins that give credentials for one."""

MANAGED_SERVICE_ACCOUNT_MODULE = Module(
    "open-cluster-management.io/managed-serviceaccount", f"v{MANAGED_SERVICE_ACCOUNT}"
)
"""Has the ManagedServiceAccount CRD, its controllers, and the plugin for their credentials."""

_OCM = "open-cluster-management.io/ocm"
OPEN_CLUSTER_MANAGEMENT_MODULE = Module(
    _OCM,
    f"v{OPEN_CLUSTER_MANAGEMENT}",
    stamps=((f"{_OCM}/pkg/version.versionFromGit", f"v{OPEN_CLUSTER_MANAGEMENT}"),),
)
"""Has the CRDs of a hub, and the controller that decides for Placements."""


KUEUE_MODULE = Module("sigs.k8s.io/kueue", f"v{KUEUE}", in_place=True)
"""Has Kueue's CRDs and webhooks, too."""

KREW_MODULE = Module("sigs.k8s.io/krew", f"v{KREW}")
JOBSET_MODULE = Module("sigs.k8s.io/jobset", f"v{JOBSET}", in_place=True)
"""Has the CRD JobSet, too."""

LEADER_WORKER_SET_MODULE = Module("sigs.k8s.io/lws", f"v{LEADER_WORKER_SET}", in_place=True)
MPI_OPERATOR_MODULE = Module("github.com/kubeflow/mpi-operator", f"v{MPI_OPERATOR}", in_place=True)
TRAINER_MODULE = Module("github.com/kubeflow/trainer/v2", f"v{TRAINER}", in_place=True)
KUBERAY_MODULE = Module("github.com/ray-project/kuberay/ray-operator", f"v{KUBERAY}", in_place=True)
SPARK_OPERATOR_MODULE = Module(
    "github.com/kubeflow/spark-operator/v2", f"v{SPARK_OPERATOR}", in_place=True
)
"""Each of these operators has its CRDs, too."""

SCHEDULER_PLUGINS_MODULE = Module("sigs.k8s.io/scheduler-plugins", f"v{SCHEDULER_PLUGINS}")
"""Has the CRD of coscheduling's PodGroups; none of its programs is built."""


_MAJOR = re.compile(r"/v\d+$")


def _built(name: str, module: Module, package: str = "") -> Tool:
    """Return a program that its authors release as an image at most."""
    return Tool(
        name=name,
        family=_MAJOR.sub("", module.path).rpartition("/")[2].removesuffix("-api"),
        version=module.version.removeprefix("v"),
        module=module,
        package=f"{module.path}/{package}".removesuffix("/"),
        release=None,
        on_request=True,
    )


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        *kubernetes.programs(kubernetes.DEFAULT),
        Tool(
            name="etcd",
            family="etcd",
            version=ETCD,
            module=Module("go.etcd.io/etcd/server/v3", f"v{ETCD}"),
            package="go.etcd.io/etcd/server/v3",
            release=Release(
                f"{_ETCD_RELEASE}/{_ETCD_NAME}.tar.gz",
                f"{_ETCD_RELEASE}/SHA256SUMS",
                f"{_ETCD_NAME}/etcd",
            ),
        ),
        Tool(
            name="kwok",
            family="kwok",
            version=KWOK,
            module=Module("sigs.k8s.io/kwok", f"v{KWOK}"),
            package="sigs.k8s.io/kwok/cmd/kwok",
            release=Release(
                "https://github.com/kubernetes-sigs/kwok/releases/download/v{version}"
                "/kwok-{os}-{arch}",
                "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{version}",
            ),
        ),
        Tool(
            name="metrics-server",
            family="metrics-server",
            version=METRICS_SERVER,
            module=Module(
                "sigs.k8s.io/metrics-server",
                f"v{METRICS_SERVER}",
                stamps=(("k8s.io/client-go/pkg/version.gitVersion", f"v{METRICS_SERVER}"),),
            ),
            package="sigs.k8s.io/metrics-server/cmd/metrics-server",
            release=Release(
                "https://github.com/kubernetes-sigs/metrics-server/releases/download/v{version}"
                "/metrics-server-{os}-{arch}",
                "https://api.github.com/repos/kubernetes-sigs/metrics-server/releases/tags"
                "/v{version}",
            ),
            on_request=True,
        ),
        Tool(
            name="coredns",
            family="coredns",
            version=COREDNS,
            module=Module("github.com/coredns/coredns", f"v{COREDNS}"),
            package="github.com/coredns/coredns",
            release=Release(
                f"{_COREDNS_RELEASE}/{_COREDNS_ARCHIVE}",
                f"{_COREDNS_RELEASE}/{_COREDNS_ARCHIVE}.sha256",
                "coredns",
            ),
            on_request=True,
        ),
        Tool(
            name="helm",
            family="helm",
            version=HELM,
            module=Module(
                "helm.sh/helm/v3",
                f"v{HELM}",
                stamps=(("helm.sh/helm/v3/internal/version.version", f"v{HELM}"),),
            ),
            package="helm.sh/helm/v3/cmd/helm",
            release=Release(
                "https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz",
                "https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz.sha256sum",
                "{os}-{arch}/helm",
            ),
            on_request=True,
        ),
        Tool(
            name="promtool",
            family="prometheus",
            version=PROMETHEUS,
            # Go's module of Prometheus 3.15 is 0.315. Service discovery, which pulls in the library
            # of every cloud, is left out: rules are all that is checked here. An older one, as
            # Debian has it, does so, too.
            module=Module(
                "github.com/prometheus/prometheus",
                f"v0.{PROMETHEUS.replace('.', '', 1)}",
                tags=("remove_all_sd",),
            ),
            package="github.com/prometheus/prometheus/cmd/promtool",
            release=Release(
                f"{_PROMETHEUS_RELEASE}/{_PROMETHEUS_NAME}.tar.gz",
                f"{_PROMETHEUS_RELEASE}/sha256sums.txt",
                f"{_PROMETHEUS_NAME}/promtool",
            ),
            on_request=True,
            debian="prometheus",
        ),
        _built("secretreader", CLUSTER_INVENTORY_MODULE, "plugins/secretreader/cmd/plugin"),
        _built(
            "kubeconfig-secretreader",
            CLUSTER_INVENTORY_MODULE,
            "plugins/kubeconfig-secretreader/cmd/plugin",
        ),
        _built("msa", MANAGED_SERVICE_ACCOUNT_MODULE, "cmd"),
        _built("cp-creds", MANAGED_SERVICE_ACCOUNT_MODULE, "cmd/clusterprofile-credentials-plugin"),
        _built("placement", OPEN_CLUSTER_MANAGEMENT_MODULE, "cmd/placement"),
        _built("kueue", KUEUE_MODULE, "cmd/kueue"),
        _built("jobset", JOBSET_MODULE),
        _built("lws", LEADER_WORKER_SET_MODULE, "cmd"),
        _built("mpi-operator", MPI_OPERATOR_MODULE, "cmd/mpi-operator"),
        _built("trainer", TRAINER_MODULE, "cmd/trainer-controller-manager"),
        _built("ray-operator", KUBERAY_MODULE),
        _built("spark-operator", SPARK_OPERATOR_MODULE, "cmd/operator"),
        _built("krew", KREW_MODULE, "cmd/krew"),
    )
}

USUAL: tuple[str, ...] = tuple(name for name, tool in TOOLS.items() if not tool.on_request)
"""What every fleet needs; the rest is got when somebody asks for it."""
