"""Plays the kubelet: runs what a Deployment of the chart describes, as processes of this machine.

No cluster here can run the image. So its programs run from this clone, or from another tree, with
the rest as a kubelet would do it: command, arguments, environment, mounted ConfigMaps, Secrets and
service account at their paths, a read-only root, and names of Services. That takes a mount
namespace for each process. The address is the cluster's own, hence one replica. User ids and limits
are not enforced.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from hack.fleetlib import processes, state
from hack.fleetlib.agents import THIS, VnodeTree
from hack.fleetlib.tools import binaries
from tests import kit
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_START: Final = 60.0  # seconds until a process must be ready
_LOOK: Final = 0.1  # seconds between two looks at a probe


@dataclass
class Kubelet:
    """The machine of one cluster. `pods` are the Deployments that run now, by name.

    `tree` has the sources that the image would have.
    """

    fleet: Fleet
    cluster: str
    folder: Path
    client: Client
    namespace: str
    pods: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    tree: VnodeTree = THIS

    @property
    def address(self) -> str:
        """Of the cluster, and so of every pod here."""
        return state.load(self.fleet.folder).cluster(self.cluster).address

    async def start(self, name: str) -> None:
        """Run the pod of a Deployment, and wait until its readiness probe succeeds."""
        deployment = await self.client.get(kinds.DEPLOYMENTS, name, self.namespace)
        spec = deployment["spec"]["template"]["spec"]
        process = await self._spawn(name, spec)
        self.pods[name] = process
        await self._until_ready(name, spec["containers"][0], process)

    async def run_once(self, name: str, spec: Object) -> str:
        """Run a pod to its end; what it printed. AssertionError if it fails."""
        process = await self._spawn(name, spec)
        code = await process.wait()
        printed = self._log(name).read_text()
        assert code == 0, printed
        return printed

    async def stop(self, name: str) -> None:
        """End a pod as the kubelet does: SIGTERM, and SIGKILL when that does not help."""
        process = self.pods.pop(name)
        if process.returncode is None:
            process.terminate()

        try:
            await asyncio.wait_for(process.wait(), 30)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise AssertionError(f"{name} did not end: {self._tail(name)}") from None

    async def roll_out(self) -> None:
        """Make what runs what the API server has."""
        for name in list(self.pods):
            await self.stop(name)
            await self.start(name)

    async def _spawn(self, name: str, spec: Object) -> asyncio.subprocess.Process:
        [container] = spec["containers"]
        folder = self.folder / self.cluster / name
        folder.mkdir(parents=True, exist_ok=True)
        environment = self._environment(name, container)
        words = [*container["command"], *container.get("args", ())]
        words = [_VARIABLE.sub(lambda found: environment[found[1]], word) for word in words]
        script = folder / "run.sh"
        script.write_text(await self._script(folder, spec, container, words))
        # Without root, root in a namespace of one's own will do.
        root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *root, "--mount", "--propagation", "private", "sh", "-e", str(script)]
        cluster = state.load(self.fleet.folder).cluster(self.cluster)
        with self._log(name).open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *processes.in_network(cluster.netns, command),
                env=environment,
                stdout=log,
                stderr=log,
            )

    def _environment(self, name: str, container: Object) -> dict[str, str]:
        fields = {
            "metadata.name": f"{name}-0",
            "metadata.namespace": self.namespace,
            "status.podIP": self.address,
        }
        server = yaml.safe_load(self.fleet.kubeconfig(self.cluster).read_text())
        port = server["clusters"][0]["cluster"]["server"].rpartition(":")[2]
        programs = [Path(self.tree.python).parent]
        programs += [path.parent for path in binaries.locate(["kube-scheduler"]).values()]
        found = {
            "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
            **self.tree.environment,
            "KUBERNETES_SERVICE_HOST": self.address,
            "KUBERNETES_SERVICE_PORT": port,
        }
        for entry in container.get("env", ()):
            source = entry.get("valueFrom")
            found[entry["name"]] = (
                fields[source["fieldRef"]["fieldPath"]] if source else entry.get("value", "")
            )

        return found

    async def _script(self, folder: Path, spec: Object, container: Object, words: list[str]) -> str:
        """Return a script that makes the file system of the container, then becomes the program."""
        services = f"vnode.{self.namespace}.svc vnode-metrics.{self.namespace}.svc"
        lines = [
            # What is below /etc and /run can be added to, without a trace on the machine.
            f"mkdir -p {folder}/etc && mount -t tmpfs tmpfs {folder}/etc",
            f"cp -a /etc/. {folder}/etc 2>/dev/null || true",
            f"mount --bind {folder}/etc /etc",
            f'echo "{self.address} {services}" >> /etc/hosts',
            "mount -t tmpfs tmpfs $(readlink -f /var/run)",
        ]
        mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", ())}
        for volume in spec.get("volumes", ()):
            target = mounts[volume["name"]]
            if "emptyDir" in volume:
                lines.append(f"mount --bind {target} {target}")  # stays writable, and has the venv
                continue

            source = folder / volume["name"]
            await self._fill(source, volume)
            lines += [f"mkdir -p {target}", f"mount --bind -o ro {source} {target}"]

        if spec.get("automountServiceAccountToken", True):
            await self._account(folder / "account", spec["serviceAccountName"])
            lines += [f"mkdir -p {_ACCOUNT}", f"mount --bind -o ro {folder}/account {_ACCOUNT}"]

        if container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append("mount -o remount,bind,ro /")

        return "\n".join([*lines, f"exec {shlex.join(words)}", ""])

    async def _fill(self, folder: Path, volume: Object) -> None:
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            data = (await self.client.get(kinds.CONFIG_MAPS, name, self.namespace))["data"]
            content = {key: value.encode() for key, value in data.items()}
        else:
            # As a kubelet does, wait for a Secret that is not there yet.
            name = volume["secret"]["secretName"]
            secret = await kit.until_one(
                self.client, kinds.SECRETS, name, self.namespace, lambda _secret: True
            )
            content = {key: base64.b64decode(value) for key, value in secret["data"].items()}

        _write(folder, content)

    async def _account(self, folder: Path, name: str) -> None:
        review = await self.client.create(
            kinds.SERVICE_ACCOUNTS, {"spec": {}}, self.namespace, name=name, subresource="token"
        )
        config = yaml.safe_load(self.fleet.kubeconfig(self.cluster).read_text())
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        content = {
            "token": objects.status(review)["token"].encode(),
            "ca.crt": base64.b64decode(authority),
            "namespace": self.namespace.encode(),
        }
        _write(folder, content)

    async def _until_ready(
        self, name: str, container: Object, process: asyncio.subprocess.Process
    ) -> None:
        """Ask the readiness probe; the end of the process, or of our patience, is a failure."""
        probe = container["readinessProbe"]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        scheme = probe.get("scheme", "HTTP").lower()
        url = f"{scheme}://{self.address}:{ports[probe['port']]}{probe['path']}"
        ended = asyncio.ensure_future(process.wait())
        try:
            async with asyncio.timeout(_START), aiohttp.ClientSession() as session:
                while not await _succeeds(session, url):
                    await asyncio.wait([ended], timeout=_LOOK)
                    assert not ended.done(), f"{name} ended: {self._tail(name)}"
        except TimeoutError:
            raise AssertionError(f"{name} is not ready: {self._tail(name)}") from None
        finally:
            ended.cancel()

    def _log(self, name: str) -> Path:
        return self.folder / self.cluster / f"{name}.log"

    def _tail(self, name: str) -> str:
        return processes.tail(str(self._log(name)))


@asynccontextmanager
async def kubelet(
    fleet: Fleet, cluster: str, folder: Path, namespace: str = "vnode"
) -> AsyncIterator[Kubelet]:
    """Yield a kubelet whose pods end with it."""
    async with fleet.client(cluster) as client:
        found = Kubelet(fleet, cluster, folder, client, namespace)
        try:
            yield found
        finally:
            for name in list(found.pods):
                await found.stop(name)


async def _succeeds(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, ssl=False, timeout=aiohttp.ClientTimeout(5)) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


def _write(folder: Path, content: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        file = folder / name
        file.touch(mode=0o600)
        file.write_bytes(data)


def endpoints(address: str, namespace: str, port: int = 9443) -> Any:
    """Return the EndpointSlice that a controller would write for the Service if pods were real."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "vnode-played",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": "vnode"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "webhook", "port": port, "protocol": "TCP"}],
    }
