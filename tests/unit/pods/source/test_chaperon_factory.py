"""A candidate is not outdated as it is made, whatever its pod has and its Target asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.permitted import MANIFESTS
from vnode.api import keys, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.pods.overriding import NoOverrides
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.runtime.target_options import TargetOptions

CLAIM = {"spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}}
TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
PODS: dict[str, Object] = {
    "plain": {},
    "ephemeral volume": {
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": CLAIM}}]
    },
    "own token": {"volumes": [{"name": "own", **TOKEN}]},
    "priority": {"priorityClassName": "gold", "priority": 7},
    "gates": {"readinessGates": [{"conditionType": "example.com/ready"}]},
}
OPTIONS = {
    "none": TargetOptions(),
    "storage classes": TargetOptions(storage_classes={"fast": "premium"}),
    "tokens of the source": TargetOptions(source_api=("api", "6443")),
    "priority classes": TargetOptions(priority_classes={"gold": "silver"}),
}


async def _ensure_copies(_pod: Object, _link: Any) -> tuple[str, tuple[str, ...]]:
    return "", ("token-of-robot",)


@pytest.mark.parametrize("runs_vnode", [True, False])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("spec", PODS)
async def test_a_new_candidate_has_the_form_of_its_pod(
    spec: str, option: str, runs_vnode: bool
) -> None:
    factory = ChaperonFactory(Identity("c1", "u"), MANIFESTS, NoOverrides(), _ensure_copies)
    options = OPTIONS[option]
    link: Any = SimpleNamespace(
        target="shop/c2",
        runs_vnode=runs_vnode,
        cluster_uid="there",
        options=options,
        priorities=PriorityMapping(options.priority_classes),
    )
    container = {"name": "main", "image": "busybox"}
    pod: Object = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
        "spec": {"containers": [container], "serviceAccountName": "robot", **PODS[spec]},
    }
    built, _note = await factory.build(pod, link, allowed=False)
    assert objects.annotations(built)[keys.FORM] == factory.form(pod, built, link)
