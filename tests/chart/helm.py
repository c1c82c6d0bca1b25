"""helm, as an operator calls it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests import kit
from vnode.api import documents
from vnode.api.objects import Object, Objects

CHART = kit.ROOT / "charts" / "vnode"
KUBERNETES = "1.36.3"  # what a chart is rendered for where no cluster says it


def helm(*words: str | Path, values: Object | None = None) -> str:
    """Return what `helm WORDS` prints; AssertionError, with its standard error, if it fails."""
    with tempfile.TemporaryDirectory() as home:
        extra = []
        if values is not None:
            file = Path(home) / "values.yaml"
            file.write_text(yaml.safe_dump(values))
            extra = ["--values", str(file)]

        places = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        environment = [f"{name}={home}" for name in places]
        return kit.run(["env", *environment, kit.program("helm"), *map(str, words), *extra])


def template(
    values: Object | None = None, *, namespace: str = "vnode", version: str = KUBERNETES
) -> Objects:
    """Return the objects of the chart, without those of hooks."""
    words = ("template", "vnode", CHART, "--namespace", namespace, "--kube-version", version)
    printed = helm(*words, "--no-hooks", values=values)
    return documents.load_all(printed)


def one(objs: Objects, kind: str, name: str = "") -> Any:
    """Return the one object of that kind, and name."""
    found = [obj for obj in objs if obj["kind"] == kind and name in ("", obj["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind} {name}"
    return found[0]
