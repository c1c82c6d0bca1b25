"""When a pod's token is made, made anew, and taken away."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from types import SimpleNamespace

import pytest

from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError, Denied, NotFound, Unreachable
from vnode.api.identity import Identity
from vnode.api.service_tokens import LIFE, Wanted
from vnode.following import minting, tokens
from vnode.following.tokens import Tokens
from vnode.runtime.links import Links, Wishes

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
SECRET = names.token_secret("p", "u")
WITH_TOKEN = {"metadata": {"annotations": {keys.TOKEN: ""}}}


USUAL_PLACE = keys.SERVICE_ACCOUNT_MOUNT


def pod(node="", uid="u", phase="Running", path=USUAL_PLACE):
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": path}]}
    mine = [{"serviceAccountToken": {"path": "token"}}] if path == USUAL_PLACE else []
    volumes = [{"name": "v", "projected": {"sources": mine}}]
    spec = {"containers": [container], "serviceAccountName": "robot", "volumes": volumes}
    metadata = {"name": "p", "namespace": "ns", "uid": uid}
    if node:
        spec["nodeName"] = node

    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


class Source:
    """An API server that makes tokens of one hour."""

    def __init__(self, clock):
        self.clock, self.asked, self.pod, self.error = clock, [], pod("n1"), None
        self.specs = []

    async def create(self, kind, body, namespace, *, name, subresource):
        assert (kind, namespace, subresource) == (kinds.SERVICE_ACCOUNTS, "ns", "token")
        if self.error:
            raise self.error

        self.asked.append((name, body["spec"]["boundObjectRef"]))
        self.specs.append(body["spec"])
        ends = self.clock.now() + timedelta(seconds=body["spec"]["expirationSeconds"])
        token = f"token-{len(self.asked)}"
        return {"status": {"token": token, "expirationTimestamp": objects.timestamp(ends)}}

    async def get(self, kind, name, _namespace):
        if kind is kinds.CONFIG_MAPS:
            return {"data": {"ca.crt": "authority"}}

        if self.pod is None:
            raise NotFound(404, "NotFound", f"pod {name} not found")

        return self.pod


class Target:
    """What is in it, shown to its informer at once."""

    def __init__(self):
        self.held, self.error = {}, None

    async def create(self, _kind, body):
        self.show(body)

    async def discard(self, _kind, copy):
        del self.held[objects.key(copy)]

    async def request(self, _method, _path, *, query):
        assert query["limit"] == "1"
        if self.error:
            raise self.error

        return {"items": list(self.held.values())}

    def show(self, body):
        self.held[objects.key(body)] = body


class Shown:
    """An informer that has a Target's objects."""

    kind = kinds.SECRETS

    def __init__(self, target, *_args, **_options):
        self.store, self.synced = target.held, asyncio.Event()
        self.synced.set()

    def subscribe(self, _handler):
        pass

    async def run(self):
        await asyncio.Event().wait()


class FakeLink(SimpleNamespace):
    """Of a target; a key, as links are."""

    __hash__ = object.__hash__

    def report(self, task, error):
        assert error is None, task


@pytest.fixture
def world(clock, monkeypatch):
    monkeypatch.setattr(tokens, "Informer", Shown)
    source, target, links, said = Source(clock), Target(), Links(), []
    link = FakeLink(
        node_name="n1",
        client=target,
        is_self=False,
        wishes=Wishes(source_api=("api", "6443")),
        health=SimpleNamespace(healthy=True),
        target=SimpleNamespace(name="t", namespace=""),
        candidates={},
        synced=True,
        chaperons=Shown(target),
        on_health=lambda _listener: None,
    )
    link.candidate = link.candidates.get
    links.add(link)
    kept = Tokens(
        *(source, links, US),
        complete=lambda _node: True,
        events=SimpleNamespace(event=lambda *words: said.append(words)),
        clock=clock,
        chance=lambda: 0.0,
    )
    return SimpleNamespace(
        source=source, target=target, link=link, links=links, tokens=kept, said=said
    )


@asynccontextmanager
async def running(world):
    task = asyncio.create_task(world.tokens.run())
    await asyncio.sleep(0.1)
    yield task
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def with_volumes(base, *sources):
    """The pod, with projected tokens of its own."""
    tokens_ = [{"serviceAccountToken": source} for source in sources]
    volumes = [{"name": "own", "projected": {"sources": tokens_}}]
    volumes = [*base["spec"]["volumes"], *volumes]
    return {**base, "spec": {**base["spec"], "volumes": volumes}}


async def test_tokens_that_a_pod_projects_itself_are_in_the_same_secret(world):
    other = with_volumes(
        pod(path="/elsewhere"),
        {"path": "t", "audience": "vault", "expirationSeconds": 600},
        {"path": "t2"},
    )
    await world.tokens.bring(other, world.link)
    (secret,) = world.target.held.values()
    wanted = [Wanted("vault", 600), Wanted("", LIFE)]
    assert secret["data"].keys() == {token.key for token in wanted}
    asked = [(spec.get("audiences"), spec["expirationSeconds"]) for spec in world.source.specs]
    assert asked == [(["vault"], 600), (None, LIFE)]
    assert all(spec["boundObjectRef"]["uid"] == "u" for spec in world.source.specs)
    refresh = objects.parse_timestamp(objects.annotations(secret)[keys.TOKEN_REFRESH])
    assert (refresh - world.source.clock.now()).total_seconds() < 600


async def test_the_usual_token_has_its_files_beside_others(world):
    await world.tokens.bring(with_volumes(pod(), {"path": "t", "audience": "a"}), world.link)
    (secret,) = world.target.held.values()
    usual = {"token", "ca.crt", "namespace"}
    assert secret["data"].keys() == usual | {Wanted("a", LIFE).key}


async def test_a_candidates_token_is_bound_to_its_pod_and_there_before_it(world):
    world.tokens.see(None, pod())
    await world.tokens.bring(pod(), world.link)
    assert list(world.target.held) == [f"ns/{SECRET}"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    assert world.source.asked == [("robot", bound)]


async def test_a_token_is_made_anew_at_80_percent_of_its_life_and_not_before(world):
    async with running(world):
        world.tokens.see(None, pod())
        await world.tokens.bring(pod(), world.link)
        world.tokens.see(pod(), pod("n1"))
        await asyncio.sleep(0.79 * LIFE)
        assert len(world.source.asked) == 1
        await asyncio.sleep(0.02 * LIFE)
        assert len(world.source.asked) == 2
        await asyncio.sleep(0.8 * LIFE)
        assert len(world.source.asked) == 3


async def test_a_token_goes_with_its_pod_or_when_that_has_finished(world):
    async with running(world):
        for after in (None, pod("n1", phase="Succeeded")):
            world.tokens.see(None, pod("n1"))
            await world.tokens.bring(pod("n1"), world.link)
            assert world.target.held
            world.tokens.see(pod("n1"), after)
            await asyncio.sleep(1)
            assert not world.target.held


async def test_a_token_goes_when_its_candidate_has_lost(world):
    async with running(world):
        world.tokens.see(None, pod())
        await world.tokens.bring(pod(), world.link)
        world.tokens.see(pod(), pod("n2"))
        await asyncio.sleep(1)
        assert not world.target.held


async def test_a_token_goes_when_its_candidate_ends_but_not_with_that_of_a_namesake(world):
    async with running(world):
        world.tokens.see(None, pod())
        await world.tokens.bring(pod(), world.link)
        world.tokens.release("ns/p", "earlier", "n1")
        await asyncio.sleep(1)
        assert world.target.held
        world.tokens.release("ns/p", "u", "n1")
        await asyncio.sleep(1)
        assert not world.target.held


async def test_a_token_goes_with_its_delegate_though_others_keep_the_pod(world):
    ending = pod("n1")
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    async with running(world):
        world.link.candidates["u"] = WITH_TOKEN
        world.tokens.see(None, pod("n1"))
        await world.tokens.bring(pod("n1"), world.link)
        world.tokens.see(pod("n1"), ending)
        await asyncio.sleep(1)
        assert world.target.held
        del world.link.candidates["u"]
        world.tokens.release("ns/p", "u", "n1")
        await asyncio.sleep(1)
        assert not world.target.held


async def test_a_target_that_spoils_its_secret_has_no_more_than_a_token_a_minute(world):
    async with running(world):
        world.link.candidates["u"] = WITH_TOKEN
        world.tokens.see(None, pod("n1"))
        await asyncio.sleep(1)
        for _ in range(10):
            world.target.held.clear()
            world.tokens._look_at_all("n1")
            await asyncio.sleep(1)

        assert len(world.source.asked) == 1
        await asyncio.sleep(60)
        assert len(world.source.asked) == 2


async def test_a_target_gets_no_token_of_a_pod_that_is_not_bound_to_it(world):
    async with running(world):
        world.tokens.see(None, pod("elsewhere"))
        world.link.candidates["u"] = WITH_TOKEN
        forged = minting.secret(pod("n1"), US, "t", {}, world.source.clock.now())
        world.target.show(forged)
        world.tokens._look_at_all("n1")
        await asyncio.sleep(120)
        assert not world.source.asked


async def test_what_a_target_says_of_a_pending_pod_brings_it_no_token(world):
    async with running(world):
        world.tokens.see(None, pod())
        world.link.candidates["u"] = WITH_TOKEN
        world.tokens._on_copy("n1", minting.secret(pod(), US, "t", {}, world.source.clock.now()))
        await asyncio.sleep(120)
        assert not world.source.asked


async def test_a_new_leader_keeps_the_token_of_a_pending_pod_fresh(world):
    """Else the pod would begin with one whose life is over."""
    world.source.pod = pod()
    world.link.candidates["u"] = WITH_TOKEN
    world.target.show(minting.secret(pod(), US, "t", {}, world.source.clock.now()))
    async with running(world):
        world.tokens.see(None, pod())
        await asyncio.sleep(120)
        assert not world.source.asked
        world.tokens.renew(pod(), world.link)
        await asyncio.sleep(0.81 * LIFE)
        assert len(world.source.asked) == 2


async def test_a_candidate_that_mounts_no_token_is_not_given_one_by_a_new_leader(world):
    world.link.candidates["u"] = {"metadata": {}}
    async with running(world):
        world.tokens.see(None, pod())
        world.tokens.renew(pod(), world.link)
        await asyncio.sleep(120)
        assert not world.source.asked


@pytest.mark.parametrize(
    "error", [NotFound(404, "NotFound", "no account"), Unreachable("away")], ids=["said", "quiet"]
)
async def test_a_token_that_could_not_be_made_anew_is_once_it_can_be(world, error):
    world.source.error = error
    world.link.candidates["u"] = WITH_TOKEN
    async with running(world):
        world.tokens.see(None, pod("n1"))
        await asyncio.sleep(1)
        assert not world.target.held
        texts = [words[3] for words in world.said]
        assert texts == (["404 NotFound: no account"] if isinstance(error, NotFound) else [])
        world.source.error = None
        await asyncio.sleep(30)
        assert world.target.held


async def test_a_target_that_did_not_ask_and_a_pod_without_the_mount_get_none(world):
    await world.tokens.bring(pod(path="/elsewhere"), world.link)
    world.link.wishes = Wishes()
    await world.tokens.bring(pod(), world.link)
    assert not world.source.asked


async def test_a_missing_right_is_told_with_the_command_that_gives_it(world):
    world.source.error = Denied(403, "Forbidden", "no")
    with pytest.raises(
        ConfigError, match="kubectl --namespace ns create rolebinding vnode-token-minter "
    ):
        await world.tokens.bring(pod(), world.link)

    world.link.candidates["u"] = WITH_TOKEN
    async with running(world):
        world.tokens.see(None, pod("n1"))
        await asyncio.sleep(1)

    assert world.said[0][2] == "TokenNotRefreshed"


async def test_a_pod_that_ran_before_its_target_asked_gets_none(world):
    world.link.candidates["u"] = {"metadata": {}}
    async with running(world):
        world.tokens.see(None, pod("n1"))
        await asyncio.sleep(120)

    assert not world.source.asked


async def test_what_is_left_when_a_target_no_longer_asks_is_kept_to_the_pods_end(world):
    await world.tokens.bring(pod("n1"), world.link)
    world.link.candidates["u"] = WITH_TOKEN
    world.link.wishes = Wishes()
    world.tokens.see(None, pod("n1"))
    async with running(world):
        await asyncio.sleep(2 * LIFE)
        assert len(world.source.asked) == 1
        assert world.target.held
        world.tokens.see(pod("n1"), None)
        await asyncio.sleep(1)
        assert not world.target.held


@pytest.mark.parametrize("error", [None, Denied(403, "Forbidden", "no")])
async def test_a_target_that_never_asked_or_may_not_be_asked_is_not_watched(world, error):
    world.link.wishes, world.target.error = Wishes(), error
    async with running(world):
        assert not world.tokens._informers


async def test_a_target_that_cannot_be_asked_what_is_left_is_watched(world):
    world.link.wishes, world.target.error = Wishes(), Unreachable("no answer")
    async with running(world):
        assert world.tokens._informers


async def test_who_no_longer_leads_follows_no_new_links(world):
    """It raised in the connection to the target, which failed for everybody."""
    async with running(world) as leading:
        leading.cancel()
        await asyncio.sleep(0)
        world.links.add(FakeLink(**{**vars(world.link), "node_name": "n2"}))
