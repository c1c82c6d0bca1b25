"""The pure parts of removals and of completion."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from tests.apiserver.faults import RequestFault
from tests.apiserver.server import APIServer
from vnode.api import account_users, errors, keys, kinds, names, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.cli import completion
from vnode.cli.remove import disconnect, source_side, target_side
from vnode.cli.remove.remote_cleanup import RemoteObjects
from vnode.cli.remove.report import RemovalReport, remove
from vnode.cli.remove.uninstall import UninstallOptions, uninstall

ACCOUNT = "system:serviceaccount:team:c1"


@pytest.mark.parametrize(
    ("spec", "user", "fits"),
    [
        ({"serviceAccountName": "c1"}, ACCOUNT, True),
        ({"serviceAccountName": "c2"}, ACCOUNT, False),
        ({"userName": "jane"}, "jane", True),
        ({"userName": "jane"}, "", False),
        ({}, "", False),
    ],
)
def test_a_source_is_found_by_whom_it_lets_in(spec: Object, user: str, fits: bool) -> None:
    source = {"metadata": {"name": "x", "namespace": "team"}, "spec": spec}
    assert disconnect.lets_in(source, user) is fits


def test_service_accounts_are_told_from_users() -> None:
    assert account_users.account_of(ACCOUNT) == ("team", "c1")
    assert account_users.account_of("jane") is None
    assert account_users.account_of(ACCOUNT + ":more") is None


@pytest.mark.parametrize(
    ("annotations", "owned", "anothers"),
    [
        ({keys.PARENT_CLUSTER_UID: "u", keys.TARGET: "team/gpu"}, True, False),
        ({keys.PARENT_CLUSTER_UID: "u", keys.TARGET: "team/ending"}, False, False),
        ({keys.PARENT_CLUSTER_UID: "u", keys.TARGET: "gpu"}, False, True),
        ({keys.PARENT_CLUSTER_UID: "u"}, True, False),
        ({keys.PARENT_CLUSTER_UID: "another", keys.TARGET: "team/gpu"}, False, False),
        ({keys.TARGET: "team/gpu"}, False, False),
    ],
)
def test_a_chaperon_is_ended_with_the_target_it_came_by(
    annotations: dict[str, str], owned: bool, anothers: bool
) -> None:
    target = {"metadata": {"name": "gpu", "namespace": "team"}}
    remote = RemoteObjects(target, Identity("c1", "u"), frozenset({"team/gpu", "team/ending"}))
    annotations |= {keys.PARENT_NAMESPACE: "team", keys.PARENT_NAME: "web"}
    metadata = {"namespace": "team", "labels": {keys.PARENT_UID: "w"}, "annotations": annotations}
    chaperon = {"metadata": {"name": names.chaperon("web", "w"), **metadata}}
    assert remote.owns(chaperon) is owned
    assert remote.is_anothers(chaperon) is anothers
    for planted in ({"name": "web"}, {"namespace": "mine"}):
        theirs = {"metadata": {**chaperon["metadata"], **planted}}
        assert not remote.owns(theirs)
        assert not remote.is_anothers(theirs)


def test_a_closed_door_can_still_be_looked_through() -> None:
    rule = {"resources": [kinds.POD_CHAPERONS.plural], "verbs": ["get", "create", "delete"]}
    other = {"resources": ["services"], "verbs": ["create"]}
    closed = target_side.without_create({"rules": [rule, other]})
    assert closed == [{**rule, "verbs": ["get", "delete"]}, other]
    assert target_side.without_create({}) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_vnode(shell: str) -> None:
    assert f"_VNODE_COMPLETE={shell}_complete" in completion.script(shell)


def test_commands_options_and_resources_are_completed() -> None:
    def names(*words: str) -> set[str]:
        return {item.value for item in completion.candidates(list(words))}

    assert names("dis") == {"disconnect"}
    assert {"--context", "--kubeconfig"} <= names("get", "targets", "--")
    assert names("get", "ta") == {"targets", "targetsets"}


async def test_nothing_is_removed_while_accounts_in_targets_are_left() -> None:
    server = APIServer("c1", SystemClock())
    metadata = {"namespace": "team", "name": "queue", "finalizers": [keys.ISSUED_TOKEN]}
    server.add(kinds.AUTH_TOKEN_REQUESTS, {"metadata": metadata, "spec": {}})
    options = UninstallOptions("vnode", keep=True, crds=True, seconds=1)
    report = RemovalReport(say=lambda _text: None)
    with pytest.raises(ConfigError, match="authtokenrequest/team/queue, of 1, has an account"):
        await uninstall(server.client(), options, report)

    assert not [each for each in server.requests if each.verb not in ("get", "list")]


async def test_a_target_whose_agent_ended_while_it_cleaned_up_goes_all_the_same() -> None:
    server = APIServer("c1", SystemClock())
    client = server.client()
    metadata = {"namespace": "team", "name": "gpu", "finalizers": [keys.CLEAN_UP]}
    server.add(kinds.TARGETS, {"metadata": metadata, "spec": {}})
    await client.delete(kinds.TARGETS, "gpu", "team")
    [ending] = await client.list(kinds.TARGETS)
    report, ends = RemovalReport(say=lambda _text: None), source_side.Ends(1.0, keep=True)
    await source_side.end_targets(client, [ending], led=False, ends=ends, report=report)
    assert await client.list(kinds.TARGETS) == []


@pytest.mark.parametrize(
    ("status", "left"), [(HTTPStatus.CONFLICT, []), (HTTPStatus.NOT_FOUND, [keys.PREFIX + "gpu"])]
)
async def test_a_proxy_that_changes_or_goes_meanwhile_ends_no_uninstallation(
    status: HTTPStatus, left: list[str]
) -> None:
    """Statuses are still written, and owners delete pods, while finalizers are taken off."""
    server = APIServer("c1", SystemClock())
    metadata = {"namespace": "team", "name": "web", "finalizers": [keys.PREFIX + "gpu"]}
    spec = {"schedulerName": keys.PROXY_SCHEDULER, "nodeName": "admiralty-gpu"}
    server.add(kinds.PODS, {"metadata": metadata, "spec": spec})
    error = errors.from_status(status, status.phrase, "it is another one by now")
    server.faults.add(RequestFault(error, "patch", kinds.PODS))
    client = server.client()
    await source_side.forget_proxies(client, RemovalReport(say=lambda _text: None))
    [pod] = await client.list(kinds.PODS)  # still there where its end was only said
    assert objects.finalizers(pod) == left


async def test_what_somebody_makes_again_meanwhile_is_left_and_told() -> None:
    """As GitOps does: the one of that name is another object by then."""
    server = APIServer("c1", SystemClock())
    metadata = {"namespace": "team", "name": "c2", "uid": "again"}
    server.add(kinds.SOURCES, {"metadata": metadata, "spec": {}})
    report = RemovalReport(say=lambda _text: None)
    listed = {"metadata": {**metadata, "uid": "listed"}}
    assert not await remove(server.client(), kinds.SOURCES, listed, report)
    [line] = report.left
    assert line.startswith("source/team/c2 not deleted: somebody has made it again")
