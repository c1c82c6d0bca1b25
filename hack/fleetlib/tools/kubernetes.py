"""Knows which versions of Kubernetes a cluster can have, and describes the programs of each.

A version is chosen by its minor (`1.34`), which stands for one release of it, or by that release
(`1.34.4`). These are releases that can be built: of some others, modules are missing. A new minor
is one more line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools.definitions import Module, Release, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT: Final = "1.37.2"
"""The version of every cluster for which none is asked: the newest."""

VERSIONS: Final = ("1.33.5", "1.34.4", "1.35.4", "1.36.3", DEFAULT)
"""One release of each supported minor, oldest first."""

OF_A_CLUSTER: Final = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
)
"""Programs of which each cluster has those of its version. Tests use one kubectl for all."""


def resolve(text: str) -> str:
    """Return the release that a minor or release stands for; FleetError lists what is known."""
    for version in VERSIONS:
        if text.removeprefix("v") in (version, version.rpartition(".")[0]):
            return version
    known = ", ".join(f"{version.rpartition('.')[0]} ({version})" for version in VERSIONS)
    raise FleetError(f"no Kubernetes {text!r}: known are {known}")


def assigned(words: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """Return the releases of clusters by `NAME=1.34` and, for all others of `names`, `1.37`.

    Of two words for the same, the later counts. FleetError if a release is not known.
    """
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for word in words:
        name, equals, version = word.rpartition("=")
        if equals:
            for_one[name] = resolve(version)
        else:
            for_all = dict.fromkeys(names, resolve(version))
    return for_all | for_one


def programs(version: str) -> tuple[Tool, ...]:
    """Return the programs of a release, whether anybody needs them or not."""
    return (
        _released("kube-apiserver", version),
        _released("kube-controller-manager", version),
        _released("kube-scheduler", version),
        _released("kubectl", version),
        _released("kubelet", version, on_request=True),
        _released("kube-proxy", version, on_request=True),
        _test_program("e2e.test", version, "k8s.io/kubernetes/test/e2e", tests=True),
        _test_program("ginkgo", version, "github.com/onsi/ginkgo/v2/ginkgo"),
        _test_program("agnhost", version, f"{_TEST_IMAGES}/agnhost", released=False),
        _test_program("nonewprivs", version, f"{_TEST_IMAGES}/nonewprivs", released=False),
        Tool(
            name="sample-apiserver",
            family="kubernetes-test",
            version=version,
            module=Module("k8s.io/sample-apiserver", _staging(version)),
            package="k8s.io/sample-apiserver",
            release=None,
            on_request=True,
        ),
    )


_TEST_IMAGES: Final = "k8s.io/kubernetes/test/images"


def _released(name: str, version: str, *, on_request: bool = False) -> Tool:
    url = f"https://dl.k8s.io/release/v{{version}}/bin/{{os}}/{{arch}}/{name}"
    return Tool(
        name=name,
        family="kubernetes",
        version=version,
        module=_module(version),
        package=f"k8s.io/kubernetes/cmd/{name}",
        release=Release(url, f"{url}.sha256"),
        on_request=on_request,
    )


def _test_program(
    name: str, version: str, package: str, *, released: bool = True, tests: bool = False
) -> Tool:
    """Return a program that Kubernetes tests clusters with; they share an archive."""
    url = "https://dl.k8s.io/v{version}/kubernetes-test-{os}-{arch}.tar.gz"
    return Tool(
        name=name,
        family="kubernetes-test",
        version=version,
        module=_module(version),
        package=package,
        release=Release(url, f"{url}.sha256", f"kubernetes/test/bin/{name}") if released else None,
        on_request=True,
        tests=tests,
    )


def _module(version: str) -> Module:
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    stamps = (
        (f"{package}.gitVersion", f"v{version}"),
        (f"{package}.gitMajor", major),
        (f"{package}.gitMinor", minor),
    )
    return Module("k8s.io/kubernetes", f"v{version}", _staging(version), stamps)


def _staging(version: str) -> str:
    """Return the version of the modules that Kubernetes publishes from its own repository."""
    return f"v0.{version.split('.', 1)[1]}"
