"""The upstream kube-scheduler takes our configuration, and our rights suffice for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import trustme

from tests import kit
from tests.fleets import SOURCE, vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

ACCOUNT = "vnode-candidate-scheduler"


def credentials(folder: Path) -> Path:
    """Write client credentials as `vnode agent --credentials-dir` does; return their folder."""
    authority = trustme.CA()
    certificate = authority.issue_cert("candidate-scheduler")
    certificate.private_key_pem.write_to_path(folder / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    return folder


async def test_kube_scheduler_starts_and_leads_with_its_own_account(
    fleet: Fleet, client: Client, tmp_path: Path
) -> None:
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, {"spec": {}}, "vnode", name=ACCOUNT, subresource="token"
    )
    reach, _name = kubeconfigs.read(fleet.kubeconfig(SOURCE))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(kubeconfigs.build(reach, objects.status(answer)["token"], "vnode"))
    files = ("--kubeconfig", kubeconfig, "--credentials-dir", credentials(tmp_path))
    printed = vnode("scheduler-config", "--extender", "https://192.0.2.1:9444", *files)
    assert printed.code == 0, printed.err
    config = tmp_path / "config.yaml"
    config.write_text(printed.out)
    log = tmp_path / "log"
    words = ("--config", str(config), "--secure-port", "0")
    with log.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            kit.program("kube-scheduler"), *words, stdout=output, stderr=output
        )

    try:
        await kit.until_one(
            client,
            kinds.LEASES,
            ACCOUNT,
            "vnode",
            lambda lease: bool(objects.spec(lease).get("holderIdentity")),
        )
    finally:
        process.terminate()
        await process.wait()

    assert "forbidden" not in log.read_text()
