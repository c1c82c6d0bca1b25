"""The go.mod files that programs are built with."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import catalogue, gobuild
from hack.fleetlib.tools.definitions import Module, Tool

KUBERNETES = Module("k8s.io/kubernetes", "v1.36.3", "v0.36.3")

ITS_GO_MOD = """\
// made by a script
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/some/thing v1.2.3
\tk8s.io/api v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
)

// an old one
replace github.com/some/thing => github.com/fork/thing v1.2.4
replace github.com/other/thing v1.0.0 => github.com/fork/other v1.1.0
"""


def test_staging_modules_are_replaced_by_their_published_version():
    text = gobuild.go_mod(KUBERNETES, ITS_GO_MOD)
    assert "require k8s.io/kubernetes v1.36.3\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.36.3\n" in text
    assert "\tk8s.io/client-go => k8s.io/client-go v0.36.3\n" in text
    assert "\ngo 1.26.0\n" in text


def test_replacements_by_other_modules_are_repeated():
    text = gobuild.go_mod(KUBERNETES, ITS_GO_MOD)
    assert "\tgithub.com/some/thing => github.com/fork/thing v1.2.4\n" in text
    assert "\tgithub.com/other/thing => github.com/fork/other v1.1.0\n" in text


def test_siblings_in_a_repository_need_no_replacement():
    its_own = "module a/server\n\ngo 1.24\n\nreplace (\n\ta/api => ../api\n)\nreplace a => ./NO\n"
    text = gobuild.go_mod(Module("a/server", "v3.1.0"), its_own)
    assert "replace" not in text
    assert text.endswith("require a/server v3.1.0\n")


def test_a_go_mod_without_a_version_of_go_is_an_error():
    with pytest.raises(FleetError, match="names no Go version"):
        gobuild.go_mod(KUBERNETES, "module x\n")


@given(st.lists(st.from_regex(r"k8s\.io/[a-z]{1,12}", fullmatch=True), unique=True))
def test_each_staging_module_appears_once(modules):
    lines = "".join(f"\t{m} => ./staging/src/{m}\n" for m in modules)
    text = gobuild.go_mod(KUBERNETES, f"module m\n\ngo 1.26.0\n\nreplace (\n{lines})\n")
    assert all(text.count(f"\t{m} => {m} v0.36.3\n") == 1 for m in modules)


def test_programs_of_kubernetes_are_told_their_version():
    flags = gobuild.linker_flags(catalogue.TOOLS["kube-apiserver"].module)
    package = "k8s.io/component-base/version"
    version = f"v{catalogue.KUBERNETES}"
    assert flags.startswith("-s -w ")
    assert f"-X {package}.gitVersion={version}" in flags
    assert f"-X {package}.gitMinor={catalogue.KUBERNETES.split('.')[1]}" in flags


def test_a_program_of_tests_is_made_by_go_test_without_vetting():
    made = {n: gobuild.command(catalogue.TOOLS[n], Path("/to")) for n in ("e2e.test", "ginkgo")}
    assert made["e2e.test"][1:4] == ["test", "-c", "-vet=off"]
    assert made["e2e.test"][-3:] == ["-o", "/to/e2e.test", "k8s.io/kubernetes/test/e2e"]
    assert made["ginkgo"][1] == "build"


def test_a_users_go_settings_do_not_change_the_build():
    given = {"GOFLAGS": "-mod=vendor", "GOWORK": "/w", "GOPROXY": "https://x", "GOMAXPROCS": "1"}
    found = gobuild.environment(given)
    assert found["GOFLAGS"] == "-mod=mod -buildvcs=false"
    assert (found["GOWORK"], found["CGO_ENABLED"]) == ("off", "0")
    assert found["GOPROXY"] == "https://x"
    assert "GOMAXPROCS" not in found  # of the fleets' programs, in `make test`


def test_a_module_is_built_in_its_own_folder_as_it_is_where_its_checksums_are_needed(
    tmp_path, monkeypatch
):
    module = Module("example.com/thing", "v1.0.0", in_place=True)
    tool = Tool("thing", "thing", "1.0.0", module, "example.com/thing", None)
    monkeypatch.setattr(gobuild, "_download", lambda _module, _folder: {"Dir": str(tmp_path)})
    monkeypatch.setattr("shutil.which", lambda _name: "/go")
    built = []
    monkeypatch.setattr(gobuild, "_build_one", lambda _tool, main, *_: built.append(main))
    gobuild.build([tool], tmp_path)
    assert built == [tmp_path]
    assert not list(tmp_path.iterdir())
    found = gobuild.environment({}, may_write=False)
    assert found["GOFLAGS"] == "-mod=readonly -buildvcs=false"


def test_a_program_in_the_root_of_its_module_is_named_as_that():
    assert catalogue.TOOLS["jobset"].package == "sigs.k8s.io/jobset"
    assert catalogue.TOOLS["kueue"].package == "sigs.k8s.io/kueue/cmd/kueue"
    assert catalogue.TOOLS["trainer"].family == "trainer"  # of github.com/kubeflow/trainer/v2


def test_staging_versions_follow_kubernetes():
    module = catalogue.TOOLS["kubectl"].module
    assert module.staging == f"v0.{catalogue.KUBERNETES.removeprefix('1.')}"
