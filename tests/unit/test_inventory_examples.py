"""The programs in examples/inventories: what they write is what the agent takes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import certificates
from tests.kit import ROOT
from vnode.kube import exec_credentials
from vnode.targets.profiles import describing, resolving
from vnode.targets.profiles.config import AccessProvider, ExecConfig, InventoryConfig
from vnode.targets.profiles.refusals import ProfileRefused

AUTHORITY = certificates.issue("authority", ca=True).pem
FOLDER = ROOT / "examples" / "inventories"
CONFIG = InventoryConfig(
    ("karmada",),
    (
        AccessProvider(
            "secretreader", ExecConfig("/plugins/secretreader", provide_cluster_info=True)
        ),
    ),
)


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import karmada_profiles  # type: ignore[import-not-found]

    return karmada_profiles


def cluster(**spec: object) -> dict:
    return {
        "metadata": {"name": "berlin", "labels": {"tier": "gold"}},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://192.0.2.7:6443", **spec},
        "status": {
            "kubernetesVersion": "v1.36.3",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "ClusterReady",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        },
    }


def credentials(**data: str) -> dict:
    authority = base64.b64encode(AUTHORITY).decode()
    token = base64.b64encode(b"token").decode()
    return {"data": {"caBundle": authority, "token": token, **data}}


def test_a_profile_of_karmada_leads_to_its_server_and_secret(recipe) -> None:
    made = recipe.made_of(cluster(), credentials(), "karmada", "vnode")
    found = resolving.resolve({**made.profile, "status": made.status}, CONFIG, {})
    assert found.cluster["server"] == "https://192.0.2.7:6443"
    assert found.plugin.cluster is not None
    assert found.plugin.cluster["config"] == {"clusterName": made.secret["metadata"]["name"]}
    assert made.secret["metadata"]["namespace"] == "vnode"
    assert base64.b64decode(made.secret["data"]["token"]) == b"token"


def test_what_karmada_knows_of_a_cluster_is_on_the_node(recipe) -> None:
    made = recipe.made_of(cluster(region="eu", zones=["a", "b"]), credentials(), "karmada", "vnode")
    shown = describing.describe({**made.profile, "status": made.status}, {})
    assert shown.labels["vnode.dev/property.region"] == "eu"
    assert shown.labels["vnode.dev/cluster-version"] == "v1.36.3"
    assert shown.labels["tier"] == "gold"
    assert [entry["type"] for entry in made.status["conditions"]] == ["ControlPlaneHealthy"]


def test_an_address_without_a_scheme_is_https(recipe) -> None:
    made = recipe.made_of(cluster(apiEndpoint="b.example:6443"), credentials(), "karmada", "vnode")
    assert made.status["accessProviders"][0]["cluster"]["server"] == "https://b.example:6443"


@pytest.mark.parametrize(
    ("spec", "secret", "word"),
    [
        ({"apiEndpoint": ""}, credentials(), "apiEndpoint"),
        ({"proxyURL": "http://proxy"}, credentials(), "proxy"),
        ({"syncMode": "Pull"}, None, "token"),
        ({"insecureSkipTLSVerification": True}, credentials(caBundle=""), "caBundle"),
    ],
)
def test_a_cluster_without_a_way_to_it_gets_a_profile_that_offers_none(
    recipe, spec, secret, word
) -> None:
    made = recipe.made_of(cluster(**spec), secret, "karmada", "vnode")
    assert word in made.problem
    assert made.secret is None
    with pytest.raises(ProfileRefused, match="offers no access"):
        resolving.resolve({**made.profile, "status": made.status}, CONFIG, {})


def host_token(folder: Path, server: str) -> subprocess.CompletedProcess[str]:
    asked = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": server}},
    }
    return subprocess.run(
        [sys.executable, FOLDER / "host_token.py", folder],
        env={**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_token_of_a_server_is_found_by_its_host(tmp_path: Path) -> None:
    (tmp_path / "c2.example.com").write_text("token-of-c2\n")
    done = host_token(tmp_path, "https://C2.example.com:6443/x")
    assert (
        exec_credentials.parse(
            done.stdout.encode(), "client.authentication.k8s.io/v1", "plugin"
        ).token
        == "token-of-c2"
    )


@pytest.mark.parametrize("host", ["c3.example.com", "..", "%2e%2e%2fother"])
def test_a_host_without_a_token_gets_none(host: str, tmp_path: Path) -> None:
    (tmp_path.parent / "other").write_text("secret")
    done = host_token(tmp_path, f"https://{host}/")
    assert done.returncode
    assert not done.stdout
