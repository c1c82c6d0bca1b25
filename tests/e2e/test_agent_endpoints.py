"""What an agent serves: who may call the extender, what probes and Prometheus see."""

from __future__ import annotations

import ssl

import aiohttp
import pytest
import yaml

from tests.kit import Fleet
from vnode.runtime.certs import issued


def address(fleet: Fleet, cluster: str) -> str:
    config = yaml.safe_load(fleet.kubeconfig(cluster).read_text())
    server = config["clusters"][0]["cluster"]["server"]
    return str(server.removeprefix("https://").rpartition(":")[0])


def trusting(fleet: Fleet, cluster: str) -> ssl.SSLContext:
    folder = fleet.folder / cluster / "credentials"
    return ssl.create_default_context(cafile=str(folder / "ca.crt"))


async def bind(fleet: Fleet, context: ssl.SSLContext, **pod: str) -> dict[str, str]:
    url = f"https://{address(fleet, 'c2')}:9444/bind"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=pod, ssl=context) as answer,
    ):
        return dict(await answer.json())


async def test_the_extender_refuses_callers_without_its_certificate(fleet: Fleet) -> None:
    with pytest.raises(aiohttp.ClientError):
        await bind(fleet, trusting(fleet, "c2"))


async def test_the_extender_refuses_another_clusters_scheduler(fleet: Fleet) -> None:
    context = trusting(fleet, "c2")
    other = fleet.folder / "c3" / "credentials"
    context.load_cert_chain(other / "tls.crt", other / "tls.key")
    with pytest.raises(aiohttp.ClientError):
        await bind(fleet, context)


async def test_the_extender_binds_only_candidates_that_it_knows(fleet: Fleet) -> None:
    context = trusting(fleet, "c2")
    folder = fleet.folder / "c2" / "credentials"
    certificate, key = (folder / name for name in issued.FILES[:2])
    context.load_cert_chain(certificate, key)
    answer = await bind(
        fleet,
        context,
        podName="stranger",
        podNamespace="default",
        podUID="u",
        node="c2-node-0",
    )
    assert "stranger" in answer["error"]
    assert "error" in await bind(fleet, context, nonsense="yes")


@pytest.mark.parametrize("path", ["healthz", "readyz"])
async def test_probes_are_answered(fleet: Fleet, path: str) -> None:
    url = f"http://{address(fleet, 'c1')}:8080/{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_metrics_tell_of_targets_and_pods(fleet: Fleet) -> None:
    url = f"http://{address(fleet, 'c1')}:8080/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        text = await answer.text()

    assert 'vnode_target_healthy{target="default/c2"} 1.0' in text
    assert "vnode_leader 1.0" in text
    assert 'vnode_pending_pods{queue="active"} 0.0' in text
