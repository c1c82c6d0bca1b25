"""The paths of the webhook end in a secret that only the key's holders know beforehand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import webhook_paths
from vnode.cli import manifests

SECRET = webhook_paths.secret_of(bytes(32))
SEGMENT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_the_secret_is_the_keys_and_may_stand_in_a_path(key: bytes, other: bytes) -> None:
    secret = webhook_paths.secret_of(key)
    assert secret == webhook_paths.secret_of(key)
    assert (secret == webhook_paths.secret_of(other)) == (key == other)
    # API servers take subdomains as segments of a path, and nothing else.
    assert SEGMENT.fullmatch(secret)
    assert len(secret) <= 63


@pytest.mark.parametrize("base", ["", "https://192.0.2.1:9443", "https://lb.example/agents"])
@pytest.mark.parametrize("plain", webhook_paths.PLAIN)
def test_an_address_is_split_into_what_is_installed_and_the_secret(base: str, plain: str) -> None:
    assert webhook_paths.split(base + plain) == (base + plain, "")
    assert webhook_paths.split(f"{base}{plain}/{SECRET}") == (base + plain, SECRET)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/mutate",
        "/mutate--v1-pod/x",
        f"/mutate--v1-pod/{SECRET.upper()}",
        f"/mutate--v1-pod/{SECRET}0",
        f"/mutate--v1-pod/{SECRET}/x",
        f"/{SECRET}",
    ],
)
def test_other_paths_have_none(path: str) -> None:
    assert webhook_paths.split(path) == (path, None)


def test_the_manifest_calls_the_plain_paths() -> None:
    hooks = manifests.webhook("vnode")["webhooks"]
    paths = [webhook_paths.address_of(hook["clientConfig"]) for hook in hooks]
    assert sorted(paths) == sorted(webhook_paths.PLAIN)


def test_webhooks_without_a_bundle_call_nobody() -> None:
    configuration = manifests.webhook("vnode", secret=SECRET)
    assert webhook_paths.secrets_in(configuration) == set()
    configuration["webhooks"][1]["clientConfig"]["caBundle"] = "x"
    assert webhook_paths.secrets_in(configuration) == {SECRET}
