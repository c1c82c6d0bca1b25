"""When a pod's token is created, replaced and removed."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import pytest

from tests import computing
from tests.apiserver import links
from tests.computing import WorkingClock
from tests.unit.following.token_environment import (
    NODE,
    SECRET,
    TARGET,
    US,
    TokensEnvironment,
    names_node,
    pod,
    running,
)
from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound, Unreachable
from vnode.api.service_tokens import LIFE, WantedToken
from vnode.api.target_key import TargetKey
from vnode.following import token_requests
from vnode.following.remote_tokens import Place
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock):
    env = TokensEnvironment(clock)
    async with links.connected(env.link):
        yield env


def with_volumes(base, *sources):
    """Return the pod with one more volume, which projects tokens of the pod's own choice."""
    tokens_ = [{"serviceAccountToken": source} for source in sources]
    volumes = [{"name": "own", "projected": {"sources": tokens_}}]
    volumes = [*base["spec"]["volumes"], *volumes]
    return {**base, "spec": {**base["spec"], "volumes": volumes}}


async def test_tokens_that_a_pod_projects_itself_are_in_the_same_secret(env):
    other = with_volumes(
        pod(path="/elsewhere"),
        {"path": "t", "audience": "vault", "expirationSeconds": 600},
        {"path": "t2"},
    )
    await env.ensure(other)
    (secret,) = env.held
    wanted = [WantedToken("vault", 600), WantedToken("", LIFE)]
    assert secret["data"].keys() == {"namespace", *(token.key for token in wanted)}
    asked = [(spec.get("audiences"), spec["expirationSeconds"]) for spec in env.specs]
    assert asked == [(["vault"], 600), (None, LIFE)]
    assert all(spec["boundObjectRef"]["uid"] == "u" for spec in env.specs)
    refresh = objects.parse_timestamp(objects.annotations(secret)[keys.TOKEN_REFRESH])
    assert (refresh - env.clock.now()).total_seconds() < 600


async def test_the_usual_token_has_its_files_beside_others(env):
    await env.ensure(with_volumes(pod(), {"path": "t", "audience": "a"}))
    (secret,) = env.held
    usual = {"token", "ca.crt", "namespace"}
    assert secret["data"].keys() == usual | {WantedToken("a", LIFE).key}
    assert base64.b64decode(secret["data"]["ca.crt"]) == b"authority"


async def test_a_candidates_token_is_bound_to_its_pod_and_there_before_it(env):
    env.tokens.on_pod(None, pod())
    await env.ensure(pod())
    assert [objects.key(each) for each in env.held] == [f"ns/{SECRET}"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    (request,) = env.asked
    assert (request.name, request.body["spec"]["boundObjectRef"]) == ("robot", bound)


async def test_the_tokens_of_a_pod_that_was_bound_name_its_node_before_it_runs(env):
    env.tokens.on_pod(None, pod())
    await env.ensure(pod())
    assert not names_node(env)
    env.add_candidate(**{keys.TOKEN: ""})
    async with running(env):
        env.tokens.on_pod(pod(), pod(NODE))
        await env.tokens.ensure_bound(pod(NODE), env.link)
        assert names_node(env)
        await env.tokens.ensure_bound(pod(NODE), env.link)
        await asyncio.sleep(120)
        assert len(env.asked) == 2


@pytest.mark.parametrize("node", ["", NODE])
async def test_a_new_leader_replaces_tokens_that_name_no_node(env, node):
    env.add_candidate(**{keys.TOKEN: ""})
    refresh = env.clock.now() + timedelta(hours=1)
    earlier = token_requests.secret(pod(node), US, str(TARGET), {}, refresh)
    env.show({**earlier, "type": "Opaque"})
    env.tokens.on_pod(None, pod(NODE))
    async with running(env):
        await env.tokens.ensure_bound(pod(NODE), env.link)
        assert names_node(env)
        assert len(env.asked) == (0 if node else 1)


async def test_a_bound_pod_whose_candidate_mounts_no_token_is_given_none(env):
    env.add_candidate()
    async with running(env):
        env.tokens.on_pod(None, pod(NODE))
        await env.tokens.ensure_bound(pod(NODE), env.link)
        assert not env.held
        assert not env.asked


async def test_a_token_is_made_anew_at_80_percent_of_its_life_and_not_before(env):
    async with running(env):
        env.tokens.on_pod(None, pod())
        await env.ensure(pod())
        env.tokens.on_pod(pod(), pod(NODE))
        await asyncio.sleep(0.79 * LIFE)
        assert len(env.asked) == 1
        await asyncio.sleep(0.02 * LIFE)
        assert len(env.asked) == 2
        await asyncio.sleep(0.8 * LIFE)
        assert len(env.asked) == 3


async def test_a_token_goes_with_its_pod_or_when_that_has_finished(env):
    async with running(env):
        for after in (None, pod(NODE, phase="Succeeded")):
            env.tokens.on_pod(None, pod(NODE))
            await env.ensure(pod(NODE))
            assert env.held
            env.tokens.on_pod(pod(NODE), after)
            await asyncio.sleep(1)
            assert not env.held


async def test_a_token_goes_when_its_candidate_has_lost(env):
    async with running(env):
        env.tokens.on_pod(None, pod())
        await env.ensure(pod())
        env.tokens.on_pod(pod(), pod("n2"))
        await asyncio.sleep(1)
        assert not env.held


async def test_a_token_goes_when_its_candidate_ends_but_not_with_that_of_a_namesake(env):
    async with running(env):
        env.tokens.on_pod(None, pod())
        await env.ensure(pod())
        env.tokens.release("ns/p", "earlier", NODE)
        await asyncio.sleep(1)
        assert env.held
        env.tokens.release("ns/p", "u", NODE)
        await asyncio.sleep(1)
        assert not env.held


async def test_a_token_goes_with_its_delegate_though_others_keep_the_pod(env):
    ending = pod(NODE)
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    async with running(env):
        env.add_candidate(**{keys.TOKEN: ""})
        env.tokens.on_pod(None, pod(NODE))
        await env.ensure(pod(NODE))
        env.tokens.on_pod(pod(NODE), ending)
        await asyncio.sleep(1)
        assert env.held
        env.remove_candidate()
        env.tokens.release("ns/p", "u", NODE)
        await asyncio.sleep(1)
        assert not env.held


async def test_a_target_that_spoils_its_secret_has_no_more_than_a_token_a_minute(env):
    async with running(env):
        env.add_candidate(**{keys.TOKEN: ""})
        env.tokens.on_pod(None, pod(NODE))
        await asyncio.sleep(1)
        for _ in range(10):
            for each in env.held:
                env.target.remove(kinds.SECRETS, objects.name(each), "ns")

            env.tokens._remote.wake_all(NODE)
            await asyncio.sleep(1)

        assert len(env.asked) == 1
        await asyncio.sleep(60)
        assert len(env.asked) == 2


async def test_all_pods_of_a_target_that_changes_are_woken_in_steps(clock):
    env, woken = TokensEnvironment(WorkingClock(clock)), []
    bound = [Place(NODE, f"ns/p{number}", "u") for number in range(100_000)]
    async with links.connected(env.link), running(env):
        await asyncio.sleep(1)
        remote = env.tokens._remote
        remote._bound, remote._wake = lambda _node: bound, woken.append
        with computing.steps() as steps:
            asyncio.get_running_loop().call_soon(env.link.report, "a task", OSError())
            await asyncio.sleep(1)

    assert max(steps) < 0.02
    assert set(woken) >= set(bound)


async def test_a_target_gets_no_token_of_a_pod_that_is_not_bound_to_it(env):
    async with running(env):
        env.tokens.on_pod(None, pod("elsewhere"))
        env.add_candidate(**{keys.TOKEN: ""})
        forged = env.forged(pod(NODE))
        env.show(forged)
        env.tokens._remote.wake_all(NODE)
        await asyncio.sleep(120)
        assert not env.asked


async def test_what_a_target_says_of_a_pending_pod_brings_it_no_token(env):
    async with running(env):
        env.tokens.on_pod(None, pod())
        env.add_candidate(**{keys.TOKEN: ""})
        env.tokens._remote._on_copy(NODE, env.forged(pod()))
        await asyncio.sleep(120)
        assert not env.asked


async def test_a_new_leader_keeps_the_token_of_a_pending_pod_fresh(env):
    """Else the pod would begin with one whose life is over."""
    env.put(pod())
    env.add_candidate(**{keys.TOKEN: ""})
    env.show(env.forged(pod()))
    async with running(env):
        env.tokens.on_pod(None, pod())
        await asyncio.sleep(120)
        assert not env.asked
        env.tokens.renew(pod(), env.link)
        await asyncio.sleep(0.81 * LIFE)
        assert len(env.asked) == 2


async def test_a_candidate_that_mounts_no_token_is_not_given_one_by_a_new_leader(env):
    env.add_candidate()
    async with running(env):
        env.tokens.on_pod(None, pod())
        env.tokens.renew(pod(), env.link)
        await asyncio.sleep(120)
        assert not env.asked


@pytest.mark.parametrize(
    "error", [NotFound(404, "NotFound", "no account"), Unreachable("away")], ids=["said", "quiet"]
)
async def test_a_token_that_could_not_be_made_anew_is_once_it_can_be(env, error):
    refusal = env.refuse(error)
    env.add_candidate(**{keys.TOKEN: ""})
    async with running(env):
        env.tokens.on_pod(None, pod(NODE))
        await asyncio.sleep(1)
        assert not env.held
        texts = [event[3] for event in env.recorded]
        assert texts == (["404 NotFound: no account"] if isinstance(error, NotFound) else [])
        refusal.clear()
        await asyncio.sleep(30)
        assert env.held


async def test_a_target_that_did_not_ask_and_a_pod_without_the_mount_get_none(env):
    await env.ensure(pod(path="/elsewhere"))
    env.link.options = TargetOptions()
    await env.ensure(pod())
    assert not env.asked


async def test_a_missing_right_is_told_with_the_command_that_gives_it(env):
    env.refuse(Denied(403, "Forbidden", "no"))
    with pytest.raises(
        ConfigError, match="kubectl --namespace ns create rolebinding vnode-token-minter "
    ):
        await env.ensure(pod())

    env.add_candidate(**{keys.TOKEN: ""})
    async with running(env):
        env.tokens.on_pod(None, pod(NODE))
        await asyncio.sleep(1)

    assert env.recorded[0][2] == "TokenNotRefreshed"


async def test_a_pod_that_ran_before_its_target_asked_gets_none(env):
    env.add_candidate()
    async with running(env):
        env.tokens.on_pod(None, pod(NODE))
        await asyncio.sleep(120)

    assert not env.asked


async def test_what_is_left_when_a_target_no_longer_asks_is_kept_to_the_pods_end(env):
    await env.ensure(pod(NODE))
    env.add_candidate(**{keys.TOKEN: ""})
    env.link.options = TargetOptions()
    env.tokens.on_pod(None, pod(NODE))
    async with running(env):
        await asyncio.sleep(2 * LIFE)
        assert len(env.asked) == 1
        assert env.held
        env.tokens.on_pod(pod(NODE), None)
        await asyncio.sleep(1)
        assert not env.held


@pytest.mark.parametrize("error", [None, Denied(403, "Forbidden", "no")])
async def test_a_target_that_never_asked_or_may_not_be_asked_is_not_watched(env, error):
    env.link.options = TargetOptions()
    if error is not None:
        env.target.fail(error, kind=kinds.SECRETS, times=None)

    async with running(env):
        assert not env.tokens._remote.is_watched(NODE)


async def test_a_target_that_cannot_be_asked_what_is_left_is_watched(env):
    env.link.options = TargetOptions()
    env.target.fail(Unreachable("no answer"), kind=kinds.SECRETS)
    async with running(env):
        assert env.tokens._remote.is_watched(NODE)


async def test_who_no_longer_leads_follows_no_new_links(env):
    """It raised in the connection to the target, which failed for everybody."""
    async with running(env) as leading:
        leading.cancel()
        await asyncio.sleep(0)
        another = links.link_to(env.target, TargetKey("", "n2"), US, env.clock)
        env.links.add(another)
