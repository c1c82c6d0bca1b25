"""Which programs a fleet needs, their versions, and where each may come from.

A new program is one more `Tool` here; one that few need is got `on_request`.
"""

from __future__ import annotations

from dataclasses import dataclass

KUBERNETES = "1.36.3"
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
KREW = "0.4.3"


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module that programs are built from.

    `staging` is the version that stands in for modules which `path`'s own go.mod replaces by a
    folder beside it: such replacements count only in the main module, so ours has to repeat them.
    `in_place` has it built in its own folder, as the main module: then its own checksums count,
    among them those that no public database gives.
    """

    path: str
    version: str
    staging: str | None = None
    stamps: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """An official download: `checksum` is where its SHA-256 is, `member` a path in an archive.

    The checksum is a file of sums, or GitHub's description of a release, which has them as digests.
    `{version}`, `{os}` and `{arch}` are filled in.
    """

    url: str
    checksum: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    family: str
    version: str
    module: Module
    package: str
    release: Release | None  # none: it is always built
    on_request: bool = False  # got only by who asks for it by name
    tests: bool = False  # made of the package's tests


def _kubernetes_stamps() -> tuple[tuple[str, str], ...]:
    major, minor, _ = KUBERNETES.split(".")
    package = "k8s.io/component-base/version"
    return (
        (f"{package}.gitVersion", f"v{KUBERNETES}"),
        (f"{package}.gitMajor", major),
        (f"{package}.gitMinor", minor),
    )


_KUBERNETES_MODULE = Module(
    "k8s.io/kubernetes", f"v{KUBERNETES}", f"v0.{KUBERNETES.split('.', 1)[1]}", _kubernetes_stamps()
)


def _kubernetes(name: str, *, on_request: bool = False) -> Tool:
    url = f"https://dl.k8s.io/release/v{{version}}/bin/{{os}}/{{arch}}/{name}"
    return Tool(
        name=name,
        family="kubernetes",
        version=KUBERNETES,
        module=_KUBERNETES_MODULE,
        package=f"k8s.io/kubernetes/cmd/{name}",
        release=Release(url, f"{url}.sha256"),
        on_request=on_request,
    )


def _test_program(name: str, package: str, *, released: bool = True, tests: bool = False) -> Tool:
    """Return a program that Kubernetes tests clusters with; they share an archive."""
    url = "https://dl.k8s.io/v{version}/kubernetes-test-{os}-{arch}.tar.gz"
    return Tool(
        name=name,
        family="kubernetes-test",
        version=KUBERNETES,
        module=_KUBERNETES_MODULE,
        package=package,
        release=Release(url, f"{url}.sha256", f"kubernetes/test/bin/{name}") if released else None,
        on_request=True,
        tests=tests,
    )


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


def _built(name: str, module: Module, package: str = "") -> Tool:
    """Return a program that its authors release as an image at most."""
    return Tool(
        name=name,
        family=module.path.rpartition("/")[2].removesuffix("-api"),
        version=module.version.removeprefix("v"),
        module=module,
        package=f"{module.path}/{package}".removesuffix("/"),
        release=None,
        on_request=True,
    )


_SAMPLE_API_SERVER = Tool(
    name="sample-apiserver",
    family="kubernetes-test",
    version=KUBERNETES,
    module=Module("k8s.io/sample-apiserver", f"v0.{KUBERNETES.split('.', 1)[1]}"),
    package="k8s.io/sample-apiserver",
    release=None,
    on_request=True,
)


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubectl"),
        _kubernetes("kubelet", on_request=True),
        _kubernetes("kube-proxy", on_request=True),
        _test_program("e2e.test", "k8s.io/kubernetes/test/e2e", tests=True),
        _test_program("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo"),
        _test_program("agnhost", "k8s.io/kubernetes/test/images/agnhost", released=False),
        _test_program("nonewprivs", "k8s.io/kubernetes/test/images/nonewprivs", released=False),
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
            # of every cloud, is left out: rules are all that is checked here.
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
        _built("krew", KREW_MODULE, "cmd/krew"),
        _SAMPLE_API_SERVER,
    )
}

USUAL: tuple[str, ...] = tuple(name for name, tool in TOOLS.items() if not tool.on_request)
"""What every fleet needs; the rest is got when somebody asks for it."""
