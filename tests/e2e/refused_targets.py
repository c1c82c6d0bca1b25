"""What is said of a Target that is no good, and that the agent goes on."""

from __future__ import annotations

from tests import kit
from tests.e2e import own_targets as own
from vnode.api import kinds, names, objects
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE


async def assert_says(source: Client, home: str, reason: str, *words: str) -> None:
    """Assert that the Target `bad` is not ready for that reason, and its message has the words.

    A warning Event on the Target has the same reason and message, and no pod is sent to its node.
    """
    target = await kit.until_one(source, kinds.TARGETS, "bad", home, own.is_because(reason))
    condition = own.ready(target)
    assert condition["status"] == "False"
    for word in words:
        assert word in condition["message"]

    await kit.until(
        source,
        kinds.EVENTS,
        lambda all_: any(
            event["involvedObject"]["uid"] == objects.uid(target)
            and (event["type"], event["reason"]) == ("Warning", reason)
            and event["message"] == condition["message"]
            for event in all_.values()
        ),
        namespace=home,
    )
    node = names.virtual_node(home, "bad")
    await kit.until(source, kinds.NODES, lambda all_: not kit.is_ready(all_.get(node, {})))


def kubeconfig_of(cluster: str) -> bytes:
    """Return a kubeconfig with these fields of its cluster."""
    return (
        "{current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}],"
        f"clusters: [{{name: it, cluster: {{{cluster}}}}}],"
        "users: [{name: it, user: {token: none}}]}"
    ).encode()


async def holder(source: Client) -> str:
    """Return the agent that leads; another process is another one."""
    lease = await kit.until_one(
        source,
        kinds.LEASES,
        AGENT_LEASE,
        "vnode",
        lambda lease: bool(objects.spec(lease).get("holderIdentity")),
    )
    return str(objects.spec(lease)["holderIdentity"])
