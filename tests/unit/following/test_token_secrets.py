"""A Secret that is the token of an account: as whom a pod speaks in a target, if it goes there."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager

import pytest

from tests.unit.following.fleet import GPU, FollowingFleet
from vnode.api import keys, kinds, names, objects, service_tokens
from vnode.api.errors import ConfigError, Denied
from vnode.api.service_tokens import LIFE
from vnode.following.copies import TOKEN_TYPE
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime

KEY = service_tokens.of_secret("exec").key
SECRET = names.token_secret("p", "p")
VOLUME = {"name": "v", "secret": {"secretName": "exec"}}
OPTIONAL = {"name": "v", "secret": {"secretName": "exec", "optional": True}}
PROJECTED = {"name": "v", "projected": {"sources": [{"secret": {"name": "exec"}}]}}
VARIABLE = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "exec", "key": "token"}}}]


class SecretsEnvironment(FollowingFleet):
    """Two targets, of which one asks for tokens, and a Secret that is the token of an account."""

    def __init__(self, clock):
        super().__init__(clock)
        self.link.options = TargetOptions(source_api=("api", "6443"))
        authority = {"name": "kube-root-ca.crt", "namespace": "ns"}
        self.source.add(kinds.CONFIG_MAPS, {"metadata": authority, "data": {"ca.crt": "authority"}})
        for account in ("robot", "executor"):
            metadata = {"name": account, "namespace": "ns"}
            self.source.add(kinds.SERVICE_ACCOUNTS, {"metadata": metadata})

    async def token(self, account="executor"):
        """Mint a token as the token controller would, one that the source's API server accepts."""
        answer = await self.source.client().create(
            *(kinds.SERVICE_ACCOUNTS, {"spec": {"expirationSeconds": 3600}}, "ns"),
            name=account,
            subresource="token",
        )
        return objects.status(answer)["token"]

    def hold(self, token, account="executor", **fields):
        """Store the Secret `exec`, which holds a token of the account."""
        annotations = {"kubernetes.io/service-account.name": account}
        data = {"token": base64.b64encode(token.encode()).decode()} if token else {}
        metadata = {"name": "exec", "namespace": "ns", "annotations": annotations}
        secret = {"metadata": metadata, "type": TOKEN_TYPE, "data": data, **fields}
        return self.source.add(kinds.SECRETS, secret)

    def pod(self, volume=VOLUME, *, path=keys.SERVICE_ACCOUNT_MOUNT, node=None, **container):
        """Store a pod of the account robot that mounts a volume, in its init container only."""
        mount = {"name": volume["name"], "mountPath": path}
        spec = {
            "containers": [{"name": "main", **container}],
            "initContainers": [{"name": "init", "volumeMounts": [mount]}],
            "volumes": [volume],
            "serviceAccountName": "robot",
            **({"nodeName": node} if node else {}),
        }
        metadata = {"name": "p", "namespace": "ns", "uid": "p"}
        return self.source.add(kinds.PODS, {"metadata": metadata, "spec": spec, "status": {}})

    @property
    def minted(self):
        """For whom, and bound to what, tokens of pods were made."""
        asked = self.source.received("create", kinds.SERVICE_ACCOUNTS, "token")
        bound = [(each.name, each.body["spec"].get("boundObjectRef")) for each in asked]
        return [(name, (ref["kind"], ref["name"], ref["uid"])) for name, ref in bound if ref]

    @property
    def held(self):
        """What the target has for the pod."""
        return self.gpu.find(kinds.SECRETS, SECRET, "ns")


@pytest.fixture
async def env(clock):
    return SecretsEnvironment(clock)


@pytest.mark.parametrize("volume", [VOLUME, OPTIONAL, PROJECTED])
@pytest.mark.parametrize("path", [keys.SERVICE_ACCOUNT_MOUNT, "/elsewhere"])
@pytest.mark.parametrize("account", ["executor", "robot"])
async def test_its_account_gets_a_token_that_ends_with_the_secret(env, volume, path, account):
    """API servers bind a token to no pod of another account."""
    secret = env.hold(await env.token(account), account)
    pod = env.pod(volume, path=path)
    async with env.running():
        assert await env.following.ensure(pod, env.link) == ("", ("exec",))
        assert env.minted == [(account, ("Secret", "exec", objects.uid(secret)))]
        assert env.held["data"].keys() == {KEY, "ca.crt", "namespace"}
        assert env.gpu.find(kinds.SECRETS, "exec", "ns") is None


@pytest.mark.parametrize("volume", [VOLUME, PROJECTED])
@pytest.mark.parametrize("path", [keys.SERVICE_ACCOUNT_MOUNT, "/elsewhere"])
async def test_a_target_without_tokens_of_the_source_is_not_used(env, volume, path):
    env.hold(await env.token())
    pod = env.pod(volume, path=path)
    async with env.running():
        reason = (
            "Secret exec is the token of service account executor, .* target cpu .* "
            "vnode.dev/service-account-tokens"
        )
        with pytest.raises(ConfigError, match=reason):
            await env.following.ensure(pod, env.other)

        assert not env.cpu.all(kinds.SECRETS)
        assert not env.minted


async def test_one_that_can_do_without_it_says_that_it_has_none(env):
    env.hold(await env.token())
    pod = env.pod(OPTIONAL)
    async with env.running():
        message, tokens = await env.following.ensure(pod, env.other)
        assert "Secret exec is the token of service account executor" in message
        assert tokens == ()


async def test_a_secret_of_that_name_in_the_target_is_used_as_it_is(env):
    env.hold(await env.token())
    theirs = {"metadata": {"name": "exec", "namespace": "ns"}, "data": {}}
    env.cpu.add(kinds.SECRETS, theirs)
    pod = env.pod()
    async with env.running():
        assert await env.following.ensure(pod, env.other) == ("", ())


@pytest.mark.parametrize(
    "container",
    [
        {"env": VARIABLE},
        {"envFrom": [{"secretRef": {"name": "exec"}}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/t", "subPath": "token"}]},
    ],
    ids=lambda container: next(iter(container)),
)
async def test_a_token_that_could_not_be_renewed_is_refused(env, container):
    env.hold(await env.token())
    pod = env.pod(**container)
    async with env.running():
        with pytest.raises(ConfigError, match="in a variable or below a subPath: mount it"):
            await env.following.ensure(pod, env.link)


@pytest.mark.parametrize(
    ("token", "account"),
    [("", "executor"), ("nonsense", "executor"), ("robot", "executor"), ("robot", "")],
    ids=["not-filled-in", "forged", "of-another", "of-nobody"],
)
async def test_a_secret_that_gives_no_access_to_an_account_brings_none(env, token, account):
    held = await env.token("robot") if token == "robot" else token
    env.hold(held, account)
    pod = env.pod()
    async with env.running():
        with pytest.raises(ConfigError, match="Secret exec holds no valid token of service"):
            await env.following.ensure(pod, env.link)

        assert not env.minted


async def test_an_opaque_secret_is_no_token_whatever_is_in_it(env):
    env.hold(await env.token(), type="Opaque")
    pod = env.pod()
    async with env.running():
        for link in (env.link, env.other):
            assert await env.following.ensure(pod, link) == ("", ())

        assert not env.minted
        for target in (env.gpu, env.cpu):
            (copy,) = target.all(kinds.SECRETS)
            assert copy["data"] == env.source.find(kinds.SECRETS, "exec", "ns")["data"]


async def test_a_secret_that_is_missing_is_waited_for_as_on_a_node(env):
    pod = env.pod()
    async with env.running():
        assert await env.following.ensure(pod, env.link) == ("", ())
        assert not env.minted


async def test_a_missing_right_is_told(env):
    env.hold(await env.token())
    env.source.fail(Denied(403, "Forbidden", "no"), subresource="token", times=None)
    pod = env.pod()
    async with env.running():
        with pytest.raises(ConfigError, match="create rolebinding vnode-token-minter"):
            await env.following.ensure(pod, env.link)


async def test_other_pods_cost_no_request_for_it(env):
    env.add_originals()
    pods = [env.add_pod(name, node=None) for name in ("one", "two")]
    async with env.running():
        await env.following.ensure(pods[0], env.link)
        before = len(env.source.received("get", kinds.SECRETS))
        await env.following.ensure(pods[1], env.link)
        assert len(env.source.received("get", kinds.SECRETS)) == before
        assert not env.source.received("create", kinds.TOKEN_REVIEWS)


@asynccontextmanager
async def bound(env):
    """Have a pod with its own token and that of the Secret run in the target."""
    env.hold(await env.token())
    own = {"name": "own", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    pod = env.pod()
    pod["spec"]["volumes"].append(own)
    env.source.add(kinds.PODS, pod)
    async with env.running():
        await env.following.ensure(pod, env.link)
        pod["spec"]["nodeName"] = GPU.node_name
        env.source.add(kinds.PODS, pod)
        labels = {keys.PARENT_UID: "p", keys.PARENT_CLUSTER_NAME: "c1"}
        notes = {keys.PARENT_NAME: "p", keys.PARENT_NAMESPACE: "ns", keys.TARGET: str(GPU)}
        metadata = {"name": names.chaperon("p", "p"), "namespace": "ns", "labels": labels}
        metadata["annotations"] = {**notes, keys.TOKEN: "exec"}
        env.gpu.add(kinds.POD_CHAPERONS, {"metadata": metadata})
        await asyncio.sleep(1)
        yield


async def test_all_tokens_of_a_pod_are_made_anew_together(env):
    async with bound(env):
        first = env.held["data"]
        await asyncio.sleep(0.9 * LIFE)
        assert [name for name, _bound in env.minted] == ["executor", "robot"] * 2
        assert env.held["data"].keys() == first.keys()
        assert env.held["data"][KEY] != first[KEY]


async def test_a_token_whose_secret_is_deleted_is_not_made_anew_and_the_others_are(env):
    async with bound(env):
        env.source.remove(kinds.SECRETS, "exec", "ns")
        await asyncio.sleep(0.9 * LIFE)
        assert [name for name, _bound in env.minted] == ["executor", "robot", "robot"]
        assert KEY not in env.held["data"]
        assert not env.events_about


async def test_a_token_whose_secret_is_spoilt_is_told_of_and_the_others_are_made_anew(env):
    async with bound(env):
        env.hold("nonsense")
        await asyncio.sleep(0.9 * LIFE)
        assert [name for name, _bound in env.minted] == ["executor", "robot", "robot"]
        ((about, text),) = env.events_about
        assert about == "p"
        assert text.startswith("Secret exec holds no valid token of service account executor")
