from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from tests.unsigned_tokens import jwt
from vnode.api import documents, keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.api.target_key import TargetKey
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.endpoint import Trust
from vnode.runtime.supervisor import supervise
from vnode.targets import secrets
from vnode.targets.accesses import TargetAccesses
from vnode.targets.model import SecretReference, TargetSpec
from vnode.targets.profiles.config import NO_INVENTORY

REFERENCE = SecretReference("team", "s", "config", "")


def test_the_kubeconfig_is_decoded_and_parsed_with_the_context_of_the_target():
    text = kubeconfigs.build(ClusterEndpoint("https://c2", None), "word", "team")
    data = {"config": base64.b64encode(text).decode()}
    found = secrets.kubeconfig({"data": data}, REFERENCE)
    assert (found.text, found.token, found.namespace) == (text, "word", "team")
    with pytest.raises(ConfigError, match="no context named 'other'; it has 'target'"):
        secrets.kubeconfig({"data": data}, replace(REFERENCE, context="other"))


@pytest.mark.parametrize(
    ("secret", "cure"),
    [
        (None, "no Secret 's' in namespace 'team': create it"),
        ({}, "has no key 'config' but nothing: set"),
        ({"data": {"b": "", "a": ""}}, "has no key 'config' but a, b: set"),
        ({"data": {"config": "no base64!"}}, "is not base64"),
    ],
)
def test_what_is_wrong_is_said_with_its_cure(secret, cure):
    with pytest.raises(ConfigError, match=cure):
        secrets.kubeconfig(secret, REFERENCE)


async def test_it_is_parsed_once_for_all_that_is_made_of_it(monkeypatch):
    texts: list[str] = []
    parse = documents.parse

    def counted(text: str) -> Any:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(documents, "parse", counted)
    token = jwt(iss="https://c2", sub="system:serviceaccount:team:c1", iat=1, exp=10**9)
    text = kubeconfigs.build(ClusterEndpoint("https://c2", None), token, "team")
    server = APIServer("c1", SystemClock())
    metadata = {"namespace": "team", "name": "s", "annotations": {keys.RENEW_TOKEN: "24h"}}
    data = {"config": base64.b64encode(text).decode()}
    server.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})
    server.add(kinds.SECRETS, {"metadata": metadata, "type": "Opaque", "data": data})
    spec = TargetSpec(TargetKey("team", "c2"), REFERENCE, "")
    accesses = TargetAccesses(
        server.client(), lambda _key: Trust(), NO_INVENTORY, SystemClock(), lambda _name: {}
    )
    async with supervise() as tasks:
        accesses.watch(tasks, lambda _key: None)
        found = await accesses.read(spec)

    assert found.endpoint.url == "https://c2"
    assert found.end is not None
    assert found.renewal is not None
    assert not found.renewal.failure
    assert texts == [text.decode()]
