"""The agents keep their CA and their paths in the webhook configuration, and no pod is refused."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from tests.certificates import issue
from vnode.api import kinds, webhook_paths
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.runtime.certs import webhook_call
from vnode.runtime.certs.webhook_bundle import QUIET, TrustedWebhook, path_patch, trust_patch

pytestmark = pytest.mark.looptime

CA = issue("vnode", ca=True).pem
URL = "https://192.0.2.1:9443"
INSTALLED = {url: manifests.webhook("vnode", url) for url in (None, URL)}


class Keeping:
    """A configuration and what keeps it; `unreached` is why the agents cannot be called."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
        self.server = APIServer("c1", clock)
        self.key = bytes(32)
        self.url = url
        self.unreached = ""
        self.calls: list[str] = []
        monkeypatch.setattr(webhook_call, "failure", self._call)
        self.install()
        authority: Any = SimpleNamespace(bundle=CA, subscribe=self._subscribe)
        self.keeper = TrustedWebhook(self.server.client(), authority, lambda: self.key, clock)
        self.changed: Callable[[], None] = lambda: None

    def _subscribe(self, listener: Callable[[], None]) -> None:
        self.changed = listener

    async def _call(self, _config: Object, secret: str, _authorities: bytes) -> str:
        self.calls.append(secret)
        return self.unreached

    def install(self) -> None:
        """Install the manifest as Helm does: what the agents wrote stays, but for the paths."""
        present = self.server.find(kinds.MUTATING_WEBHOOKS, "vnode")
        wanted = copy.deepcopy(INSTALLED[self.url])
        if present is None:
            self.server.add(kinds.MUTATING_WEBHOOKS, wanted)
            return

        def change(obj: Object) -> None:
            for hook, new in zip(obj["webhooks"], wanted["webhooks"], strict=True):
                hook["clientConfig"] |= new["clientConfig"]

        self.server.change(kinds.MUTATING_WEBHOOKS, "vnode", "", change)

    @property
    def hooks(self) -> list[Object]:
        found = self.server.find(kinds.MUTATING_WEBHOOKS, "vnode") or {}
        return [hook["clientConfig"] for hook in found["webhooks"]]

    @property
    def secrets(self) -> set[str | None]:
        return {webhook_paths.split(webhook_paths.address_of(hook))[1] for hook in self.hooks}

    def secret(self) -> str:
        return webhook_paths.secret_of(self.key)


@pytest.fixture(params=[None, URL], ids=["service", "url"])
async def env(clock: Clock, monkeypatch: pytest.MonkeyPatch, request: Any) -> Keeping:
    return Keeping(clock, monkeypatch, request.param)


async def test_what_nobody_has_called_yet_gets_bundle_and_secret_at_once(env: Keeping) -> None:
    async with background.running(env.keeper.run()):
        await asyncio.sleep(1)
        assert env.secrets == {env.secret()}
        assert all(hook.get("caBundle") for hook in env.hooks)
        assert [bool(hook.get("url")) for hook in env.hooks] == [env.url is not None] * 3
        assert env.keeper.trusted.is_set()
        assert not env.calls


async def test_what_is_installed_again_keeps_its_paths_until_replicas_come_and_go_no_more(
    env: Keeping,
) -> None:
    async with background.running(env.keeper.run()):
        await asyncio.sleep(1)
        env.install()
        await asyncio.sleep(QUIET - 1)
        assert env.secrets == {""}
        await asyncio.sleep(2)
        assert env.secrets == {env.secret()}
        assert env.calls == [env.secret()]


async def test_paths_stay_as_long_as_a_replica_does_not_know_the_others(env: Keeping) -> None:
    async with background.running(env.keeper.run()):
        await asyncio.sleep(1)
        env.install()
        env.unreached = "there is an agent of an earlier version"
        await asyncio.sleep(3 * QUIET)
        assert env.secrets == {""}
        assert env.keeper.trusted.is_set()
        env.unreached = ""
        await asyncio.sleep(2 * QUIET)
        assert env.secrets == {env.secret()}


async def test_another_key_gives_the_paths_another_secret_in_time(env: Keeping) -> None:
    async with background.running(env.keeper.run()):
        await asyncio.sleep(1)
        before, env.key = env.secret(), bytes(31) + b"1"
        env.changed()
        await asyncio.sleep(QUIET - 1)
        assert env.secrets == {before}
        await asyncio.sleep(2)
        assert env.secrets == {env.secret()} != {before}


async def test_two_replicas_do_not_undo_each_others_paths(env: Keeping, clock: Clock) -> None:
    authority: Any = SimpleNamespace(bundle=CA, subscribe=lambda _: None)
    other = TrustedWebhook(env.server.client(), authority, lambda: bytes(32), clock)
    async with background.running(env.keeper.run(), other.run()):
        await asyncio.sleep(5 * QUIET)
        assert env.secrets == {env.secret()}
        assert len(list(env.server.received("patch", kinds.MUTATING_WEBHOOKS))) <= 2


async def test_only_paths_of_ours_are_changed() -> None:
    hook = {"name": "x", "clientConfig": {"url": "https://example.com/other", "caBundle": "x"}}
    assert path_patch({"webhooks": [hook]}, webhook_paths.secret_of(bytes(32))) == []
    hook = {"name": "x", "clientConfig": {"url": "https://example.com/other"}}
    patch = trust_patch({"webhooks": [hook]}, CA, webhook_paths.secret_of(bytes(32)))
    assert [operation["path"] for operation in patch][-1] == "/webhooks/0/clientConfig/caBundle"
