"""`vnode install` on a real API server, and the rights that it gives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.fleets import SOURCE, Result, vnode
from tests.kit import Fleet
from tests.rights import bind, may, until_may
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.cli import kubeconfigs, manifests
from vnode.cli.access import Access
from vnode.cli.connect import connector
from vnode.kube.client import Client

AGENT = "system:serviceaccount:vnode:vnode"
RELEASED = {
    "labels": {"helm.sh/chart": "vnode-0.1.0", "app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": "mine",
        "meta.helm.sh/release-namespace": "vnode",
    },
}
NOT_RELEASED = {kind: dict.fromkeys(names) for kind, names in RELEASED.items()}


async def token(client: Client, account: str, namespace: str) -> str:
    """Return a token of a service account."""
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, {"spec": {}}, namespace, name=account, subresource="token"
    )
    return str(objects.status(answer)["token"])


def kubeconfig_with(fleet: Fleet, bearer: str, folder: Path) -> Path:
    """Return a kubeconfig for c1 with that token."""
    reach, _name = kubeconfigs.read(fleet.kubeconfig(SOURCE))
    file = folder / "kubeconfig"
    file.write_bytes(kubeconfigs.build(reach, bearer, "default"))
    return file


def test_the_first_run_creates_and_the_second_changes_nothing(
    fleet: Fleet, installation: Result
) -> None:
    assert "customresourcedefinition/targets.multicluster.admiralty.io" in installation.out
    again = vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE))
    assert again.code == 0, again.err
    *objs, warning = again.out.splitlines()
    assert {line.split()[-1] for line in objs} == {"unchanged"}
    assert warning.startswith(
        "Warning: the webhook calls Service vnode/vnode, which does not exist"
    )


async def test_what_somebody_changed_is_put_right(fleet: Fleet, client: Client) -> None:
    await client.patch(kinds.CLUSTER_ROLES, "admiralty-source", {"rules": []})
    again = vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE))
    assert "clusterrole/admiralty-source configured" in again.out
    role = await client.get(kinds.CLUSTER_ROLES, "admiralty-source")
    assert any("podchaperons" in rule["resources"] for rule in role["rules"])


async def test_the_ca_bundle_that_the_agent_wrote_survives(fleet: Fleet, client: Client) -> None:
    hook = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
    bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
    config = {**hook["webhooks"][0]["clientConfig"], "caBundle": bundle}
    body = {"webhooks": [{**hook["webhooks"][0], "clientConfig": config}]}
    await client.patch(kinds.MUTATING_WEBHOOKS, "vnode", body)
    file = fleet.kubeconfig(SOURCE)
    url = "https://192.0.2.1:9443"
    assert vnode("install", "--kubeconfig", file, "--webhook-url", url).code == 0
    hook = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
    assert hook["webhooks"][0]["clientConfig"] == {
        "url": "https://192.0.2.1:9443/mutate--v1-pod",
        "caBundle": bundle,
    }

    again = vnode("install", "--kubeconfig", file, "--webhook-service")
    assert again.code == 0, again.err
    hook = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
    assert hook["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    assert "url" not in hook["webhooks"][0]["clientConfig"]


async def test_another_run_keeps_what_the_first_was_told(fleet: Fleet, client: Client) -> None:
    file = fleet.kubeconfig(SOURCE)
    url = "https://192.0.2.1:9443"
    options = ("--namespace", "agents", "--webhook-url", url, "--webhook-timeout", "7")
    first = vnode("install", "--kubeconfig", file, *options, "--reinvocation-policy", "IfNeeded")
    assert first.code == 0, first.err
    try:
        before = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
        again = vnode("install", "--kubeconfig", file)
        assert again.code == 0, again.err
        assert await client.get(kinds.MUTATING_WEBHOOKS, "vnode") == before
        assert before["webhooks"][0]["clientConfig"]["url"] == f"{url}/mutate--v1-pod"
        bindings = await client.get(kinds.CLUSTER_ROLE_BINDINGS, "vnode")
        assert bindings["subjects"][0]["namespace"] == "agents"
        kept = [line for line in again.out.splitlines() if " kept; " in line]
        assert len(kept) == 4
        assert f"the webhook's address {url}/mutate--v1-pod is kept; --webhook-url" in again.out
        printed = vnode("install", "--kubeconfig", file, "--dry-run").out
        assert f"url: {url}" in printed
        assert "namespace: agents" in printed

        other = vnode("install", "--kubeconfig", file, "--webhook-url", "https://192.0.2.2:9443")
        assert other.code == 0, other.err
        hook = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
        assert hook["webhooks"][0]["clientConfig"]["url"].startswith("https://192.0.2.2:")
        assert hook["webhooks"][0]["timeoutSeconds"] == 7
    finally:
        defaults = (
            "--webhook-service",
            "--webhook-timeout",
            "10",
            "--reinvocation-policy",
            "Never",
        )
        last = vnode("install", "--kubeconfig", file, "--namespace", "vnode", *defaults)
        assert last.code == 0, last.err
        assert " kept; " not in last.out
        await client.delete(kinds.NAMESPACES, "agents")


async def test_what_a_helm_release_made_is_left_to_helm(fleet: Fleet, client: Client) -> None:
    body = {"metadata": RELEASED, "rules": []}
    await client.patch(kinds.CLUSTER_ROLES, "admiralty-source", body)
    try:
        again = vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE))
        assert again.code == 0, again.err
        assert "clusterrole/admiralty-source left to the Helm release vnode/mine" in again.out
        assert "helm upgrade mine charts/vnode --namespace vnode" in again.out
        assert not (await client.get(kinds.CLUSTER_ROLES, "admiralty-source"))["rules"]
    finally:
        await client.patch(kinds.CLUSTER_ROLES, "admiralty-source", {"metadata": NOT_RELEASED})
        assert vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE)).code == 0


async def test_what_a_helm_release_has_yet_to_make_is_left_to_helm(
    fleet: Fleet, client: Client
) -> None:
    file, missing = fleet.kubeconfig(SOURCE), "vnode-agent-specs"
    await client.patch(kinds.MUTATING_WEBHOOKS, "vnode", {"metadata": RELEASED})
    await client.delete(kinds.VALIDATING_POLICIES, missing)
    try:
        again = vnode("install", "--kubeconfig", file, "--self-targets")
        assert again.code == 0, again.err
        left = "left to the Helm release vnode/mine"
        assert f"validatingadmissionpolicy/{missing} {left}" in again.out
        assert f"clusterrolebinding/vnode-self-targets {left}" in again.out
        assert f"namespace/vnode {left}" in again.out
    finally:
        await client.patch(kinds.MUTATING_WEBHOOKS, "vnode", {"metadata": NOT_RELEASED})
        assert vnode("install", "--kubeconfig", file).code == 0


async def test_rights_for_self_targets_come_and_go_by_their_flags(
    fleet: Fleet, client: Client
) -> None:
    file, streams = fleet.kubeconfig(SOURCE), "create /pods/exec any"
    assert not await may(client, AGENT, streams)
    given = vnode("install", "--kubeconfig", file, "--self-targets")
    assert "clusterrolebinding/vnode-self-targets created" in given.out
    await until_may(client, AGENT, streams)
    again = vnode("install", "--kubeconfig", file)
    assert "clusterrolebinding/vnode-self-targets unchanged" in again.out
    assert "self: true are kept; --no-self-targets takes them away" in again.out
    gone = vnode("install", "--kubeconfig", file, "--no-self-targets")
    assert "clusterrolebinding/vnode-self-targets deleted" in gone.out
    assert "self" not in vnode("install", "--kubeconfig", file).out.replace(
        "vnode-self-target ", ""
    )


@pytest.mark.parametrize("used", [True, False])
async def test_of_an_older_version_rights_for_self_targets_are_kept_if_one_uses_them(
    fleet: Fleet, client: Client, namespace: str, used: bool
) -> None:
    await bind(client, "vnode-self-target", "vnode-self-target")
    for kind in (kinds.TARGETS, kinds.CLUSTER_TARGETS):
        for left in await client.list(kind):  # by other tests
            await client.discard(kind, left)

    if used:
        body = {"metadata": {"name": "here"}, "spec": {"self": True}}
        await client.create(kinds.TARGETS, body, namespace)

    done = vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE))
    assert "clusterrolebinding/vnode-self-target deleted" in done.out
    assert ("clusterrolebinding/vnode-self-targets created" in done.out) is used
    if used:
        await client.delete(kinds.TARGETS, "here", namespace)
        words = ("--kubeconfig", fleet.kubeconfig(SOURCE), "--no-self-targets")
        assert vnode("install", *words).code == 0


async def test_the_pod_security_level_of_a_namespace_that_is_there_stays(
    fleet: Fleet, client: Client
) -> None:
    level, file = manifests.POD_SECURITY, fleet.kubeconfig(SOURCE)
    made = await client.get(kinds.NAMESPACES, "vnode")
    assert objects.labels(made)[level] == "restricted"
    for other in (None, "privileged"):
        await client.patch(kinds.NAMESPACES, "vnode", {"metadata": {"labels": {level: other}}})
        again = vnode("install", "--kubeconfig", file)
        command = f"kubectl label namespace vnode {level}=restricted"
        assert (command in again.out) is (other is None)
        found = await client.get(kinds.NAMESPACES, "vnode")
        assert objects.labels(found).get(level) == other

    body = {"metadata": {"labels": {level: "restricted"}}}
    await client.patch(kinds.NAMESPACES, "vnode", body)
    assert "no Pod Security level" not in vnode("install", "--kubeconfig", file).out


def test_a_dry_run_prints_what_would_be_applied_and_needs_no_cluster() -> None:
    printed = vnode("install", "--dry-run", "--namespace", "other")
    objs = list(yaml.safe_load_all(printed.out))
    assert objs == manifests.everything("other", manifests.webhook("other"))


async def test_one_without_rights_learns_whose_kubeconfig_to_use(
    fleet: Fleet, client: Client, namespace: str, tmp_path: Path
) -> None:
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "weak"}}, namespace)
    weak = kubeconfig_with(fleet, await token(client, "weak", namespace), tmp_path)
    refused = vnode("install", "--kubeconfig", weak)
    assert refused.code == 1
    assert refused.err.startswith("Error: ")
    assert "administrator" in refused.err
    assert refused.err.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    nowhere = kubeconfigs.ClusterEndpoint("https://127.0.0.1:1", None)
    file = tmp_path / "kubeconfig"
    file.write_bytes(kubeconfigs.build(nowhere, "t", "default"))
    failed = vnode("install", "--kubeconfig", file)
    assert (failed.code, failed.err.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "question",
    [
        "create /pods/binding any",
        "patch /pods/status any",
        "delete /pods any",
        "patch /nodes/status",
        "patch coordination.k8s.io/leases kube-node-lease",
        "create coordination.k8s.io/leases vnode",
        "get coordination.k8s.io/leases vnode vnode-agent",
        "patch coordination.k8s.io/leases vnode vnode-agent",
        "list /secrets",
        "create /secrets vnode",
        "patch multicluster.admiralty.io/targets/status any",
        "update multicluster.admiralty.io/podchaperons/finalizers any",
        "bind rbac.authorization.k8s.io/clusterroles - admiralty-source",
        "patch admissionregistration.k8s.io/mutatingwebhookconfigurations - vnode",
        "create authorization.k8s.io/subjectaccessreviews",
        "create certificates.k8s.io/certificatesigningrequests",
        "get /configmaps kube-system extension-apiserver-authentication",
    ],
)
async def test_the_agent_may_do_what_it_needs(client: Client, question: str) -> None:
    assert await may(client, AGENT, question)


@pytest.mark.parametrize(
    "question",
    [
        "create /secrets default",
        "update /pods any",
        "create /pods/exec any",
        "get /pods/log any",
        "delete coordination.k8s.io/leases kube-node-lease",
        "patch coordination.k8s.io/leases kube-system kube-scheduler",
        "create coordination.k8s.io/leases kube-system",
        "patch coordination.k8s.io/leases vnode vnode-candidate-scheduler",
        "patch /secrets default",
        "patch admissionregistration.k8s.io/mutatingwebhookconfigurations - other",
        "bind rbac.authorization.k8s.io/clusterroles - cluster-admin",
        "escalate rbac.authorization.k8s.io/clusterroles",
        "create rbac.authorization.k8s.io/clusterroles",
        "create /serviceaccounts/token any",
        "create apps/deployments any",
        "patch multicluster.admiralty.io/targets any",
        "create /namespaces",
        "impersonate /users",
        "patch certificates.k8s.io/certificatesigningrequests/approval",
        "approve certificates.k8s.io/signers - kubernetes.io/kubelet-serving",
    ],
)
async def test_the_agent_may_not_do_more(client: Client, question: str) -> None:
    assert not await may(client, AGENT, question)


async def test_the_manager_of_connect_is_another_one_than_that_of_install() -> None:
    from vnode.cli import installation

    assert len({installation.MANAGER, connector.MANAGER}) == 2


async def test_kubeconfigs_for_processes_are_of_the_accounts_and_nobody_else_reads_them(
    fleet: Fleet, installation: Result, tmp_path: Path
) -> None:
    agent, scheduler = tmp_path / "agent.kubeconfig", tmp_path / "scheduler.kubeconfig"
    scheduler.write_text("of before")
    words = ("--agent-kubeconfig", agent, "--scheduler-kubeconfig", scheduler)
    done = vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE), *words)
    assert done.code == 0, done.err
    assert f"{agent}: kubeconfig of serviceaccount/vnode; its token ends on 20" in done.out
    kind = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    for file, account in ((agent, "vnode"), (scheduler, "vnode-candidate-scheduler")):
        assert file.stat().st_mode & 0o777 == 0o600
        async with Access(file).client() as own:
            me = await own.request("POST", kind.path(), body=review)
            assert me["status"]["userInfo"]["username"] == f"system:serviceaccount:vnode:{account}"

    left = await asyncio.to_thread(lambda: sorted(path.name for path in tmp_path.iterdir()))
    assert left == [agent.name, scheduler.name]


def test_a_kubeconfig_that_cannot_be_written_is_told(fleet: Fleet, installation: Result) -> None:
    absent = Path("/nonexistent/agent.kubeconfig")
    words = ("--kubeconfig", fleet.kubeconfig(SOURCE), "--agent-kubeconfig", absent)
    done = vnode("install", *words)
    assert done.code == 1
    assert f"cannot write {absent}: No such file" in done.err
