"""Routes of a virtual node that neither stream nor look: run, checkpoint, metrics, what is off."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration import kubelets
from tests.integration.kubelets import CONTAINER, Setting
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object


@pytest.fixture
async def node(kubelet_fleet: Fleet) -> AsyncIterator[Setting]:
    """Yield a virtual node."""
    async with kubelets.virtual_node(kubelet_fleet, f"v{os.urandom(3).hex()}") as setting:
        yield setting


@pytest.fixture
async def pod(node: Setting) -> AsyncIterator[Object]:
    """Yield a proxy pod whose delegate runs."""
    async with node.pod() as proxy:
        yield proxy


async def ask(node: Setting, method: str, path: str) -> tuple[int, str, str]:
    """Ask a node, by way of the source's API server, as an administrator.

    Return the status, content type and text of the answer.
    """
    api = node.source.endpoint
    base = kinds.NODES.path(name=node.link.node_name, subresource="proxy")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=api.ssl or False)) as session,
        session.request(method, api.url + base + path) as response,
    ):
        return response.status, response.content_type, await response.text()


def there(pod: Object, *more: str) -> str:
    """Return the end of a path: namespace, pod, and what follows."""
    return "/".join(["", "default", objects.name(pod), *more])


async def test_run_answers_with_the_output_of_a_command_in_the_target(node: Setting, pod: Object):
    for path in (there(pod, CONTAINER), there(pod, objects.uid(pod), CONTAINER)):
        status, kind, text = await ask(node, "POST", f"/run{path}?cmd=printenv+CLUSTER")
        assert (status, kind, text) == (200, "application/json", "c2\n")


@pytest.mark.parametrize(
    ("container", "command", "status", "words"),
    [
        (CONTAINER, "false", 500, "false"),
        ("nobody", "true", 500, 'container not found ("nobody")'),
    ],
)
async def test_run_says_what_failed(
    node: Setting, pod: Object, container: str, command: str, status: int, words: str
):
    found, _kind, text = await ask(node, "POST", f"/run{there(pod, container)}?cmd={command}")
    assert found == status
    assert words in text


@pytest.mark.parametrize("path", ["/run/default/nobody/app?cmd=x", "/run/default/nobody/1/app"])
async def test_run_of_an_unknown_pod_is_404(node: Setting, path: str):
    assert (await ask(node, "POST", path))[0] == 404


async def test_a_checkpoint_fails_as_that_of_a_kubelet(node: Setting, pod: Object):
    status, _kind, text = await ask(node, "POST", f"/checkpoint{there(pod, CONTAINER)}")

    assert status == 500
    assert f"checkpointing of default/{objects.name(pod)}/{CONTAINER} failed" in text
    for path in (f"{there(pod, 'nobody')}", f"{there(pod, CONTAINER)}?timeout=long"):
        assert (await ask(node, "POST", f"/checkpoint{path}"))[0] == 404


@pytest.mark.parametrize(
    ("path", "family"),
    [
        ("/metrics", "kubelet_running_pods"),
        ("/metrics/slis", "kubernetes_healthcheck"),
        ("/metrics/resource", "scrape_error"),
        ("/metrics/cadvisor", None),
        ("/metrics/probes", None),
    ],
)
async def test_metrics_are_in_the_format_of_prometheus(
    node: Setting, path: str, family: str | None
):
    status, kind, text = await ask(node, "GET", path)

    families = {found.name for found in text_string_to_metric_families(text)}
    assert (status, kind) == (200, "text/plain")
    assert family in families if family else text.startswith("# ")


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/logs/", 405, "logs endpoint is disabled"),
        ("/debug/pprof/profile", 405, "disabled"),
        ("/flagz", 404, "not found"),
        ("/statusz", 404, "not found"),
        ("/nothing", 404, "Not Found"),
    ],
)
async def test_what_a_virtual_node_cannot_have_is_said(
    node: Setting, path: str, status: int, words: str
):
    found, _kind, text = await ask(node, "GET", path)
    assert found == status
    assert words in text
