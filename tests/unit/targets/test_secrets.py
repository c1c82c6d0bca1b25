from __future__ import annotations

import base64

import pytest

from vnode.api.errors import ConfigError
from vnode.targets import secrets
from vnode.targets.model import SecretReference

REFERENCE = SecretReference("team", "s", "config", "")


def test_the_kubeconfig_is_decoded():
    data = {"config": base64.b64encode(b"text").decode()}
    assert secrets.kubeconfig({"data": data}, REFERENCE) == b"text"


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
