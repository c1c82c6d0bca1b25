"""What becomes of tokens of service accounts on the way to a target, with and without following."""

from __future__ import annotations

import copy

import pytest

from tests.unit.pods.proxy_pods import build, proxy, source_with
from vnode.api import keys, names, objects, service_tokens
from vnode.api.service_tokens import WantedToken

API = ("api", "6443")
SECRET = names.token_secret("web-0", "u1")
BOTH = pytest.mark.parametrize("source_api", [None, API], ids=["target", "source"])
NAMESPACE_FILE = {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}
NAMESPACE = {"downwardAPI": NAMESPACE_FILE}
ROOT_CA = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
TOKEN = {"path": "token", "expirationSeconds": 3607}
KUBE = {
    "name": "kube-api-access-x",
    "projected": {
        "sources": [{"serviceAccountToken": TOKEN}, {"configMap": ROOT_CA}, NAMESPACE],
        "defaultMode": 420,
    },
}
"""As admission makes it."""
MOUNT = {"name": KUBE["name"], "mountPath": keys.SERVICE_ACCOUNT_MOUNT, "readOnly": True}
ADDRESS = [
    {"name": "KUBERNETES_SERVICE_HOST", "value": "api"},
    {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
]


def of_target(source):
    """Return the spec that goes to a target without tokens of the source."""
    return build(proxy(source))["spec"]


def of_source(source, tokens=()):
    """Return the spec that goes with tokens of the source; `tokens` are Secrets that are tokens."""
    return build(proxy(source), source_api=API, tokens=tokens)["spec"]


def mapped(*items, **reference):
    files = [{"key": key, "path": path} for key, path in items]
    return {"secret": {**reference, "name": SECRET, "items": files}}


def mounting(volume, path=keys.SERVICE_ACCOUNT_MOUNT, field="containers", **spec):
    """Return a pod of the account robot with a volume in one container, as admission leaves it."""
    mounts = [{"name": volume["name"], "mountPath": path}]
    containers = {"containers": [{"name": "main"}], field: [{"name": "c", "volumeMounts": mounts}]}
    return source_with(**containers, volumes=[volume], serviceAccountName="robot", **spec)


def test_the_token_of_admission_is_taken_off_every_kind_of_container():
    other = {"name": "data", "mountPath": "/data"}
    source = source_with(
        containers=[{"name": "main", "volumeMounts": [other, MOUNT]}],
        initContainers=[{"name": "init", "volumeMounts": [MOUNT]}],
        volumes=[KUBE, {"name": "data"}],
        serviceAccountName="robot",
    )
    spec = of_target(source)
    assert spec["containers"][0]["volumeMounts"] == [other]
    assert spec["initContainers"][0]["volumeMounts"] == []
    assert spec["volumes"] == [{"name": "data"}]
    assert "automountServiceAccountToken" not in spec  # the target mounts one of its own


def test_a_token_of_the_source_stands_where_the_targets_own_would():
    own = {"name": "KUBERNETES_SERVICE_PORT", "value": "1"}
    source = source_with(
        containers=[
            {"name": "main", "volumeMounts": [MOUNT], "env": [own]},
            {"name": "without"},
        ],
        initContainers=[{"name": "init", "volumeMounts": [MOUNT]}],
        volumes=[KUBE, {"name": "other"}],
    )
    before = copy.deepcopy(source)
    spec = of_source(source)
    sources = [mapped(("token", "token")), mapped(("ca.crt", "ca.crt")), NAMESPACE]
    projected = {"sources": sources, "defaultMode": 420}
    assert spec["volumes"] == [{"name": KUBE["name"], "projected": projected}, {"name": "other"}]
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["env"] == [ADDRESS[0], own]
    assert spec["containers"][0]["volumeMounts"] == [MOUNT]
    assert spec["containers"][1] == {"name": "without"}
    assert spec["initContainers"][0]["env"] == ADDRESS
    assert source == before


@BOTH
@pytest.mark.parametrize(
    "volume",
    [
        {"name": "own", "secret": {"secretName": "mine"}},
        {"name": "exec", "secret": {"secretName": "robot-token-x7f2k"}},
        {"name": "dir", "emptyDir": {}},
        {"name": "projected", "projected": {"sources": [{"secret": {"name": "mine"}}]}},
        {"name": "kube-api-access-y", "secret": {"secretName": "mine"}},
    ],
    ids=lambda volume: volume["name"],
)
def test_what_a_user_mounts_where_tokens_are_looked_for_travels_as_it_is(volume, source_api):
    source = mounting(volume)
    built = build(proxy(source), source_api=source_api)
    assert built["spec"]["volumes"] == [volume]
    assert built["spec"]["containers"] == source["spec"]["containers"]
    assert built["spec"]["automountServiceAccountToken"] is False
    assert keys.TOKEN not in objects.annotations(built)


def test_beside_a_users_own_secret_admission_of_the_target_gives_others_theirs():
    own = {"name": "own", "secret": {"secretName": "mine"}}
    mount = {"name": "own", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    containers = [
        {"name": "a", "volumeMounts": [mount]},
        {"name": "b", "volumeMounts": [MOUNT]},
    ]
    source = source_with(containers=containers, volumes=[own, KUBE], serviceAccountName="robot")
    spec = of_target(source)
    assert spec["volumes"] == [own]
    assert [each["volumeMounts"] for each in spec["containers"]] == [[mount], []]
    assert "automountServiceAccountToken" not in spec
    followed = of_source(source)
    assert followed["automountServiceAccountToken"] is False
    assert followed["containers"][0] == containers[0]
    assert followed["containers"][1]["env"] == ADDRESS


@BOTH
@pytest.mark.parametrize("automount", [None, False], ids=["account", "pod"])
def test_a_pod_that_has_no_token_gets_none_in_the_target_either(automount, source_api):
    """Its account may have said so, which the pod does not show."""
    source = source_with(serviceAccountName="robot", automountServiceAccountToken=automount)
    built = build(proxy(source), source_api=source_api)
    assert built["spec"]["automountServiceAccountToken"] is False
    assert keys.TOKEN not in objects.annotations(built)


def test_a_pod_that_saw_no_admission_of_accounts_is_left_to_the_targets():
    assert "automountServiceAccountToken" not in of_target(source_with())
    assert of_source(source_with()) == of_target(source_with())


def test_what_a_user_projects_under_the_name_of_admission_stays_if_that_mounts_none():
    source = mounting(KUBE, automountServiceAccountToken=False)
    assert of_target(source)["volumes"] == [KUBE]
    assert of_target(source)["containers"] == source["spec"]["containers"]


def test_a_token_that_a_user_projects_is_the_targets_to_fill_or_the_sources():
    token = {"path": "jwt", "expirationSeconds": 600}
    vault = {"path": "vault/token", "audience": "vault"}
    others = [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}, NAMESPACE]
    items = [{"key": "ca.crt", "path": "ca"}]
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": items}}
    sources = [{"serviceAccountToken": token}, {"serviceAccountToken": vault}, authority, *others]
    volume = {"name": "own", "projected": {"sources": sources, "defaultMode": 256}}
    source = mounting(volume, "/tokens")
    before = copy.deepcopy(source)
    assert of_target(source)["volumes"] == [volume]
    spec = of_source(source)
    assert spec["volumes"][0]["projected"] == {
        "sources": [
            mapped((WantedToken("", 600).key, "jwt")),
            mapped((WantedToken("vault", 3600).key, "vault/token")),
            mapped(("ca.crt", "ca")),
            *others,
        ],
        "defaultMode": 256,
    }
    assert spec["containers"][0]["env"] == ADDRESS
    assert source == before


def test_a_token_for_somebody_else_brings_no_address_of_the_api_server():
    vault = {"serviceAccountToken": {"path": "t", "audience": "vault"}}
    volume = {"name": "own", "projected": {"sources": [vault]}}
    assert "env" not in of_source(mounting(volume, "/tokens"))["containers"][0]
    assert of_source(mounting(volume))["containers"][0]["env"] == ADDRESS


def test_the_authority_of_a_target_stays_where_no_token_is_beside_it():
    volume = {"name": "ca", "projected": {"sources": [{"configMap": ROOT_CA}]}}
    assert of_source(mounting(volume, "/ca"))["volumes"] == [volume]


KEY = service_tokens.of_secret("exec").key


@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("path", [keys.SERVICE_ACCOUNT_MOUNT, "/elsewhere"])
def test_the_secret_of_an_account_is_exchanged_for_that_accounts_token(path, field):
    volume = {"name": "exec", "secret": {"secretName": "exec", "defaultMode": 256}}
    source = mounting(volume, path, field)
    live = objects.spec(source)
    built = build(proxy(source, **live), source_api=API, tokens=["exec"])
    spec = built["spec"]
    files = mapped((KEY, "token"), ("ca.crt", "ca.crt"), ("namespace", "namespace"))["secret"]
    taken = {"secretName": SECRET, "items": files["items"], "defaultMode": 256}
    assert spec["volumes"] == [{"name": "exec", "secret": taken}]
    assert spec[field][0]["env"] == ADDRESS
    assert spec["automountServiceAccountToken"] is False
    assert objects.annotations(built)[keys.TOKEN] == "exec"


def test_items_of_such_a_secret_keep_their_paths():
    items = [{"key": "token", "path": "a/t", "mode": 256}, {"key": "other", "path": "o"}]
    taken = [{"key": KEY, "path": "a/t", "mode": 256}, items[1]]
    secret = {"secretName": "exec", "items": items, "optional": True}
    spec = of_source(mounting({"name": "v", "secret": secret}), ["exec"])
    assert spec["volumes"][0]["secret"] == {**secret, "secretName": SECRET, "items": taken}
    source = {"secret": {"name": "exec", "items": items}}
    projected = {"name": "v", "projected": {"sources": [source, {"configMap": ROOT_CA}]}}
    spec = of_source(mounting(projected), ["exec"])
    (first, second) = spec["volumes"][0]["projected"]["sources"]
    assert first == {"secret": {"name": SECRET, "items": taken}}
    assert second == {"configMap": ROOT_CA}


@pytest.mark.parametrize("volume", [KUBE, {"name": "v", "secret": {"secretName": "exec"}}])
@BOTH
def test_a_target_that_runs_admiralty_gets_the_same(volume, source_api):
    pod = proxy(mounting(volume))
    specs = [
        build(pod, finalizer=finalizer, source_api=source_api, tokens=["exec"])["spec"]
        for finalizer in (True, False)
    ]
    assert specs[0] == specs[1]


def test_a_pod_without_a_token_is_the_same_with_tokens_of_the_source():
    pod = proxy()
    assert build(pod, source_api=API)["spec"] == build(pod)["spec"]
