"""Who can do what: each test is a line of the threat model in docs/security.md."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube import endpoint
from vnode.kube.client import Client

__all__ = ["home", "shared"]

NODE_C2 = names.virtual_node("default", "c2")


@pytest.fixture
def lawless(fleet: Fleet) -> Iterator[None]:
    """Stop the agent of c2 during the test, so that it does not undo what the test writes there."""
    fleet.run("stop", "c2", "agent")
    yield
    fleet.run("start", "c2", "agent")


async def may(
    client: Client, verb: str, kind: Kind | str, namespace: str = "", group: str = ""
) -> bool:
    """Return what the API server says to a SelfSubjectAccessReview."""
    resource, _, subresource = (kind if isinstance(kind, str) else kind.plural).partition("/")
    wanted = {
        "verb": verb,
        "group": kind.group if isinstance(kind, Kind) else group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await client.request("POST", path, body=review)
    return bool(answer["status"]["allowed"])


async def test_a_source_can_do_in_a_target_only_what_its_source_object_grants(
    as_source: Client,
) -> None:
    assert await may(as_source, "create", kinds.POD_CHAPERONS, "default")
    assert await may(as_source, "get", "pods/log", "default")
    for namespace in ("default", "kube-system", "vnode", ""):
        for verb, kind in (
            ("create", kinds.PODS),
            ("patch", kinds.PODS),
            ("delete", kinds.PODS),
            ("create", "pods/binding"),
            ("create", kinds.SERVICE_ACCOUNTS),
            ("create", "serviceaccounts/token"),
            ("create", kinds.ROLE_BINDINGS),
            ("create", kinds.SOURCES),
            ("impersonate", "users"),
        ):
            assert not await may(as_source, verb, kind, namespace), (verb, kind, namespace)

    for namespace in ("kube-system", "vnode", ""):
        for verb, kind in (
            ("create", kinds.POD_CHAPERONS),
            ("list", kinds.POD_CHAPERONS),
            ("get", kinds.SECRETS),
            ("create", kinds.SECRETS),
            ("get", "pods/log"),
            ("create", "pods/exec"),
        ):
            assert not await may(as_source, verb, kind, namespace), (verb, kind, namespace)

    for verb, kind in (("list", kinds.NODES), ("create", kinds.NAMESPACES), ("get", "nodes/proxy")):
        assert not await may(as_source, verb, kind), (verb, kind)


def forged(pod: Object, namespace: str = "default", **annotations: str) -> Object:
    """Return a PodChaperon that a hostile target would show as a candidate of a pod.

    Its name is formed as Admiralty forms names.
    """
    return {
        "metadata": {
            "name": f"{objects.name(pod)}-abcde",
            "namespace": namespace,
            "labels": {
                keys.PARENT_UID: objects.uid(pod),
                keys.PARENT_CLUSTER_NAME: "c1",
            },
            "annotations": {
                keys.PARENT_NAMESPACE: objects.namespace(pod),
                keys.PARENT_NAME: objects.name(pod),
                **annotations,
            },
        },
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "main", "image": "busybox"}],
        },
    }


@pytest.mark.parametrize("claim", [keys.IS_RESERVED, keys.IS_ALLOWED])
async def test_a_target_cannot_claim_a_pod_that_must_not_be_there(
    source: Client, c2: Client, claim: str
) -> None:
    """The pod's own constraints keep it off c2, whatever c2 says that it has reserved."""
    elsewhere = "nodeSelector: {example.com/region: elsewhere}"
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: elsewhere}
    await source.create(kinds.PODS, kit.pod("picky", annotations=annotations), "default")
    picky = await kit.until_one(
        source,
        kinds.PODS,
        "picky",
        "default",
        lambda pod: (
            "node affinity" in (objects.condition(pod, "PodScheduled") or {})["message"]
            if objects.condition(pod, "PodScheduled")
            else False
        ),
    )
    await c2.create(kinds.POD_CHAPERONS, forged(picky, **{claim: "true"}))
    selector = "metadata.name=picky-abcde"
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", field_selector=selector)
    picky = await source.get(kinds.PODS, "picky", "default")
    assert "nodeName" not in picky["spec"]


async def test_a_target_cannot_claim_pods_of_other_namespaces(
    source: Client, c2: Client, shared: str
) -> None:
    """The Target c2 is for namespace default."""
    await source.create(kinds.PODS, kit.pod("foreign"), shared)
    pod = await kit.until_one(
        source,
        kinds.PODS,
        "foreign",
        shared,
        lambda pod: objects.condition(pod, "PodScheduled") is not None,
    )
    planted = await c2.create(kinds.POD_CHAPERONS, forged(pod, **{keys.IS_RESERVED: "true"}))
    witness = await own.run_pod(source, "default", "witness")  # the scheduler has gone on since
    assert witness["spec"]["nodeName"] in (NODE_C2, names.virtual_node("default", "c3"))
    pod = await source.get(kinds.PODS, "foreign", shared)
    assert "nodeName" not in pod["spec"]
    await source.delete(kinds.PODS, "foreign", shared)
    await c2.delete(kinds.POD_CHAPERONS, objects.name(planted), "default")


async def test_a_target_feeds_back_nothing_but_status_and_foreign_annotations(
    source: Client, c2: Client, request: pytest.FixtureRequest
) -> None:
    constraints = "nodeSelector: {multicluster.admiralty.io/target-name: c2}"
    pod = await own.run_pod(source, "default", "honest", **{keys.PROXY_CONSTRAINTS: constraints})
    hostile_status = {
        "podIP": "169.254.169.254",
        "podIPs": [{"ip": "169.254.169.254"}],
        "message": "from the target",
    }
    request.getfixturevalue("lawless")
    chaperon = names.chaperon("honest", objects.uid(pod))
    metadata = {
        "labels": {"app": "other"},
        "annotations": {
            keys.ELECT: "changed",
            keys.SOURCE_POD_MANIFEST: "forged",
            keys.OWN_PREFIX + "x": "forged",
            "example.com/fine": "yes",
        },
    }
    await c2.patch(kinds.POD_CHAPERONS, chaperon, {"metadata": metadata}, "default")
    await c2.patch(
        kinds.POD_CHAPERONS, chaperon, {"status": hostile_status}, "default", subresource="status"
    )
    after = await kit.until_one(
        source,
        kinds.PODS,
        "honest",
        "default",
        lambda pod: objects.status(pod).get("message") == "from the target",
    )
    assert after["spec"] == pod["spec"]
    assert objects.labels(after) == objects.labels(pod)
    assert objects.finalizers(after) == objects.finalizers(pod)
    assert objects.metadata(after).get("ownerReferences") is None
    before = {k: v for k, v in objects.annotations(pod).items() if not keys.is_foreign(k)}
    ours = {k: v for k, v in objects.annotations(after).items() if not keys.is_foreign(k)}
    assert ours.pop(keys.FED_BACK) == '{"example.com/fine":"yes"}'
    assert ours == before
    assert "169.254.169.254" not in str(objects.status(after))


async def test_an_administrator_of_one_namespace_connects_it_without_more_rights(
    fleet: Fleet, source: Client, c2: Client, shared: str, tmp_path: Path
) -> None:
    files = {}
    for name, client in (("c1", source), ("c2", c2)):
        token = await administrator(client, shared)
        files[name] = tmp_path / f"alice-{name}"
        files[name].write_bytes(own.with_token(fleet, name, token))
        async with Client(endpoint.from_kubeconfig_file(files[name]), name=name) as alice:
            assert not await may(alice, "create", kinds.TARGETS, "default")
            assert not await may(alice, "create", kinds.CLUSTER_TARGETS)
            assert not await may(alice, "create", kinds.CLUSTER_SOURCES)
            assert not await may(alice, "list", kinds.SECRETS, "vnode")

    words = ["--namespace", shared, "--name", "bad", "--cluster-name", "c1"]
    done = vnode("connect", "--source", files["c1"], "--target", files["c2"], *words)
    assert done.code == 0, done.err
    await own.assert_connects(source, shared)
    pod = await own.run_pod(source, shared, "hers")
    assert pod["spec"]["nodeName"] == names.virtual_node(shared, "bad")
    await source.delete(kinds.PODS, "hers", shared)
    await kit.until_gone(source, kinds.PODS, shared)


async def test_a_delegate_gets_no_more_of_a_host_than_the_target_allows(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    """The target's Pod Security judges delegates, and the pod says what it found."""
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    await c2.patch(kinds.NAMESPACES, shared, {"metadata": {"labels": labels}})
    done = own.connect(fleet, shared, "c2", "--cluster-name", "c1")
    assert done.code == 0, done.err
    await own.assert_connects(source, shared)
    template = kit.pod("greedy", hostNetwork=True)
    template["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    await source.create(kinds.PODS, template, shared)
    pod = await kit.until_one(
        source,
        kinds.PODS,
        "greedy",
        shared,
        lambda pod: "PodSecurity" in str(objects.condition(pod, "PodScheduled")),
    )
    assert "nodeName" not in pod["spec"]
    assert not await c2.list(kinds.PODS, shared)
    await source.delete(kinds.PODS, "greedy", shared)
    await kit.until_gone(source, kinds.PODS, shared)


async def test_no_credential_is_in_any_log(fleet: Fleet, source: Client) -> None:
    """Tokens of Targets and agents, and keys, in the logs of all that vnode has run so far."""
    secrets = {}
    for secret in await source.list(kinds.SECRETS):
        for key, value in (secret.get("data") or {}).items():
            text = base64.b64decode(value).decode(errors="replace")
            secrets[f"{objects.key(secret)} {key}"] = kubeconfigs.token_in(text.encode()) or text

    for file in fleet.folder.glob("*/*.kubeconfig"):
        secrets[str(file)] = kubeconfigs.token_in(file.read_bytes()) or ""

    assert any(text.startswith("eyJ") for text in secrets.values())
    for log in fleet.folder.glob("*/agent.log"):
        written = log.read_text()
        assert written
        for name, text in secrets.items():
            for line in text.splitlines():
                assert len(line) < 40 or line[:40] not in written, f"{name} is in {log.name}"


async def administrator(client: Client, namespace: str) -> str:
    """Return the token of somebody who has the role `admin` of Kubernetes in one namespace."""
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "alice"}}, namespace)
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {
            "apiGroup": kinds.CLUSTER_ROLES.group,
            "kind": kinds.CLUSTER_ROLES.kind,
            "name": "admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": namespace}],
    }
    await client.create(kinds.ROLE_BINDINGS, binding, namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, request, namespace, name="alice", subresource="token"
    )
    return str(objects.status(answer)["token"])
