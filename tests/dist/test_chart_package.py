"""The chart's package is the chart, and the CRDs beside it are all of them."""

from __future__ import annotations

from pathlib import Path

import vnode
from tests.chart.helm import CHART, KUBERNETES, helm
from tests.dist.conftest import Artefacts
from vnode.api import documents


def rendered(chart: Path) -> str:
    words = ("template", "vnode", chart, "--namespace", "vnode", "--kube-version", KUBERNETES)
    return helm(*words, "--set", "clusterName=c1")


def test_it_is_without_faults(artefacts: Artefacts):
    package = artefacts.one(f"vnode-{vnode.__version__}.tgz")
    assert "0 chart(s) failed" in helm("lint", package, "--strict", "--kube-version", KUBERNETES)


def test_it_installs_what_the_chart_does(artefacts: Artefacts):
    package = artefacts.one(f"vnode-{vnode.__version__}.tgz")
    assert rendered(package) == rendered(CHART)
    assert f'image: "vnode:{vnode.__version__}"' in rendered(package)


def test_the_crds_are_those_of_the_chart(artefacts: Artefacts):
    alone = documents.load_all(artefacts.one("vnode-crds-*.yaml").read_text())
    chart = documents.load_all(rendered(artefacts.one(f"vnode-{vnode.__version__}.tgz")))
    names = [obj["metadata"]["name"] for obj in alone]
    assert sorted(names) == sorted(
        obj["metadata"]["name"] for obj in chart if obj["kind"] == "CustomResourceDefinition"
    )
    assert len(names) == len(set(names))
