"""What `vnode quickstart` has helm do, and what it needs to be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnode.api.errors import ConfigError
from vnode.cli.access import Access
from vnode.cli.connect.connect import Side
from vnode.cli.quickstart import command, helm
from vnode.cli.quickstart.helm import Chart


def test_a_release_is_made_or_upgraded_in_the_cluster_that_is_named() -> None:
    side = Side("source", Access(Path("c1"), "admin"))
    chart = Chart("charts/vnode", (Path("a.yaml"), Path("b.yaml")), ("x=y",))
    assert " ".join(helm.words(side, chart, "vnode", 90)) == (
        "upgrade --install vnode charts/vnode --namespace vnode --create-namespace --timeout 90s "
        "--kubeconfig c1 --kube-context admin --values a.yaml --values b.yaml --set x=y"
    )


def test_values_of_both_come_before_those_of_one() -> None:
    both, one, other = (Path(name) for name in ("both", "one", "other"))
    made = command.charts("c", "example/vnode", (both,), (one,), (other,))
    assert made["source"].values == (both, one)
    assert made["target"].values == (both, other)
    assert made["target"].settings == ("controllerManager.image.repository=example/vnode",)
    assert command.charts(None, "example/vnode", (), (), ()) == {}


def test_without_helm_the_error_names_the_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigError, match=r"helm not found: install Helm.*vnode install"):
        helm.check()


async def test_what_helm_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\necho 'Error: no chart' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConfigError, match="helm failed in the target cluster: Error: no chart"):
        await helm.install(["upgrade"], "target")
