"""What tests use to talk to clusters: clients, waiting on watches, kubectl, the fleet tool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound, TooManyRequests
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import endpoint, watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

ROOT = Path(__file__).parent.parent
FLEET = ROOT / "hack" / "fleet"


@dataclass(frozen=True)
class Fleet:
    """Some clusters that hack/fleet has started in a folder."""

    folder: Path

    def kubeconfig(self, name: str) -> Path:
        """Return the administrator's kubeconfig of a cluster."""
        return self.folder / f"kubeconfig-{name}"

    def run(self, verb: str, *words: str) -> str:
        """Run `hack/fleet VERB DIR WORDS`; return what it prints."""
        return run([sys.executable, str(FLEET), verb, str(self.folder), *words])

    @asynccontextmanager
    async def client(self, name: str, kind: type[Client] = Client) -> AsyncIterator[Client]:
        """Yield a client with an administrator's rights."""
        where = endpoint.from_kubeconfig_file(self.kubeconfig(name))
        async with kind(where, name=name) as client:
            yield client

    def kubectl(self, name: str, *words: str, **options: Any) -> str:
        """Return what kubectl prints; CalledProcessError, with its standard error, if it fails."""
        return run([*self.kubectl_command(name), *words], **options)

    def wait(self, name: str, what: str, *conditions: str) -> None:
        """Have `kubectl wait` meet conditions, `TYPE` or `TYPE=STATUS`, of what is named."""
        for condition in conditions:
            words = (*what.split(), f"--for=condition={condition}", TIMEOUT)
            assert "condition met" in self.kubectl(name, "wait", *words)

    def opt_in(self, name: str) -> None:
        """Have the webhook look at the namespace default of a cluster."""
        label = "=".join(keys.WEBHOOK_NAMESPACE_LABEL)
        self.kubectl(name, "label", "namespace", "default", label, "--overwrite")

    @contextmanager
    def self_targets(self, name: str) -> Iterator[None]:
        """Let a cluster's agent do what a Target of its own cluster takes, in the block."""
        install = [sys.executable, "-m", "vnode", "install"]
        install += ["--kubeconfig", str(self.kubeconfig(name))]
        run([*install, "--self-targets"])
        try:
            yield
        finally:
            run([*install, "--no-self-targets"])

    def kubectl_command(self, name: str) -> list[str]:
        """Return the command to put words behind.

        kubectl remembers for hours what an address serves, and fleets have each other's addresses.
        """
        options = ["--kubeconfig", str(self.kubeconfig(name))]
        return [program("kubectl"), *options, "--cache-dir", str(self.folder / "kubectl-cache")]


@cache
def program(name: str) -> str:
    """Return the path of a program as `hack/binaries` has it, whatever the machine has."""
    return run([sys.executable, str(ROOT / "hack" / "binaries"), name]).strip()


def run(command: list[str], **options: Any) -> str:
    """Run a command; return its standard output.

    Raise AssertionError, with standard output and standard error, if it fails.
    """
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)  # or vnode would ask whoever runs the tests

    result = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, **options
    )
    if result.returncode:
        raise AssertionError(
            f"{' '.join(command)} exited with {result.returncode}:\n{result.stdout}{result.stderr}"
        )

    return result.stdout


PATIENCE: Final = 240.0
"""Seconds for which a test waits for what a quiet machine does in a few: another may be busy."""

TIMEOUT: Final = f"--timeout={PATIENCE:.0f}s"
"""The same for kubectl."""

_SHOWN: Final = 30  # objects in the message of an assertion, those that changed last


async def until(
    client: Client,
    kind: Kind,
    condition: Callable[[dict[str, Object]], bool],
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    seconds: float = PATIENCE,
) -> dict[str, Object]:
    """Watch until `condition` holds of all objects, by key; AssertionError shows what there was."""
    found: dict[str, Object] = {}
    selection = ListOptions(kind, namespace, label_selector, field_selector)
    try:
        async with asyncio.timeout(seconds):
            await _follow(client, selection, condition, found)
    except TimeoutError:
        latest = sorted(found.items(), key=lambda item: _version(item[1]), reverse=True)
        shown = [f"{key}: {_shown(obj)}" for key, obj in latest[:_SHOWN]]
        raise AssertionError(
            f"not so within {seconds:g} s; {len(found)} {kind.plural}:\n" + "\n".join(shown)
        ) from None

    return found


def _version(obj: Object) -> int:
    return int(objects.metadata(obj).get("resourceVersion", 0))


def _shown(obj: Object) -> Object:
    """Return what tells how an object is: of a pod a line, not all that its kubelet says."""
    status = objects.status(obj)
    if "phase" not in status:
        return status or {part: obj[part] for part in obj if part != "metadata"}

    unmet = [c for c in status.get("conditions") or () if c.get("status") != "True"]
    return {
        "phase": status["phase"],
        "node": objects.node_name(obj),
        "since": objects.metadata(obj).get("creationTimestamp"),
        "deletion": objects.metadata(obj).get("deletionTimestamp"),
        "conditions": [{k: c.get(k) for k in ("type", "reason", "message")} for c in unmet],
    }


async def _follow(
    client: Client,
    selection: ListOptions,
    condition: Callable[[dict[str, Object]], bool],
    found: dict[str, Object],
) -> None:
    items, version = await client.list_at(
        selection.kind,
        selection.namespace,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
    )
    found.update((objects.key(item), item) for item in items)
    while not condition(found):
        async with aclosing(watching.stream(client, selection, version)) as batches:
            async for batch in batches:
                for event in batch:
                    version = objects.resource_version(event.object)
                    if event.type == watching.DELETED:
                        found.pop(objects.key(event.object), None)
                    elif event.type != watching.BOOKMARK:
                        found[objects.key(event.object)] = event.object

                if condition(found):
                    return


async def until_one(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str,
    condition: Callable[[Object], object],
    seconds: float = PATIENCE,
) -> Object:
    """Watch one object until `condition` holds of it."""
    key = objects.join_key(namespace, name)
    found = await until(
        client,
        kind,
        lambda all_: key in all_ and bool(condition(all_[key])),
        namespace=namespace or None,
        field_selector=f"metadata.name={name}",
        seconds=seconds,
    )
    return found[key]


async def until_pods(
    client: Client,
    app: str,
    condition: Callable[[dict[str, Object]], bool],
    seconds: float = PATIENCE,
) -> dict[str, Object]:
    """Watch the pods in namespace default whose label `app` is that, until it holds of them."""
    return await until(
        client,
        kinds.PODS,
        condition,
        namespace="default",
        label_selector=f"app={app}",
        seconds=seconds,
    )


async def until_running(client: Client, name: str, seconds: float = PATIENCE) -> Object:
    """Watch a pod in namespace default until it runs."""
    return await until_one(
        client, kinds.PODS, name, "default", lambda pod: phase(pod) == "Running", seconds
    )


async def until_refused(client: Client, name: str, *words: str) -> Object:
    """Watch a pod in namespace default until it says all that of why it is not scheduled."""

    def is_told(pod: Object) -> bool:
        message = (objects.condition(pod, "PodScheduled") or {}).get("message") or ""
        return all(each in message for each in words)

    return await until_one(client, kinds.PODS, name, "default", is_told)


async def until_event(
    client: Client, namespace: str, field_selector: str, text: str = ""
) -> Object:
    """Watch until there is such an Event whose message has that text."""
    found = await until(
        client,
        kinds.EVENTS,
        lambda all_: any(text in event["message"] for event in all_.values()),
        namespace=namespace,
        field_selector=field_selector,
    )
    return next(event for event in found.values() if text in event["message"])


async def until_gone(
    client: Client,
    kind: Kind,
    namespace: str | None = None,
    *,
    seconds: float = PATIENCE,
    **selectors: str,
) -> None:
    """Watch until there is no such object."""
    await until(
        client, kind, lambda all_: not all_, namespace=namespace, seconds=seconds, **selectors
    )


def phase(obj: Object) -> str:
    """Return `status.phase` of a pod, or an empty string."""
    return str(objects.status(obj).get("phase", ""))


def is_ready(obj: Object, status: str = "True") -> bool:
    """Tell whether the Ready condition of a node or a Target has that status."""
    return has_condition(obj, "Ready", status)


def has_condition(obj: Object, kind: str, status: str = "True") -> bool:
    """Tell whether the condition of that type has that status."""
    return (objects.condition(obj, kind) or {}).get("status") == status


def running(pods: dict[str, Object], count: int) -> bool:
    """Tell whether there are exactly `count` pods, all running."""
    return len(pods) == count and all(phase(pod) == "Running" for pod in pods.values())


async def until_served(client: Client, kind: Kind) -> None:
    """Return once objects of a new kind can be listed: a moment after its CRD is established."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.list(kind)
                return
            except (NotFound, TooManyRequests):
                await asyncio.sleep(0.05)


async def new_namespace(client: Client, name: str, *, elected: bool = False) -> str:
    """Return a namespace that the webhook looks at."""
    annotations = {"multicluster.admiralty.io/elect": ""} if elected else {}
    await client.create(
        kinds.NAMESPACES,
        {
            "metadata": {
                "name": name,
                "labels": {"multicluster-scheduler": "enabled"},
                "annotations": annotations,
            }
        },
    )
    return name


async def namespace_for_pods(client: Client, name: str, *, elected: bool = False) -> str:
    """Return such a namespace in which pods can be created: its service account is there."""
    await new_namespace(client, name, elected=elected)
    await until_one(client, kinds.SERVICE_ACCOUNTS, "default", name, bool)
    return name


@asynccontextmanager
async def namespace_in_all(name: str, *clients: Client) -> AsyncIterator[str]:
    """Have a namespace in all of these clusters, ready for pods, within the block; yield it."""
    for client in clients:
        await namespace_for_pods(client, name)

    yield name
    for client in clients:
        await client.delete(kinds.NAMESPACES, name)


def pod(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a pod that asks for little; elected unless told otherwise."""
    if annotations is None:
        annotations = {"multicluster.admiralty.io/elect": ""}

    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def pod_in(target: str, name: str, **spec: Any) -> Object:
    """Return a pod like that of `pod`, elected, which may be in one target only."""
    constraints = f"nodeSelector: {{{keys.TARGET_NAME}: {target}}}"
    return pod(name, annotations={keys.ELECT: "", keys.PROXY_CONSTRAINTS: constraints}, **spec)


def deployment(name: str, replicas: int, template: Object) -> Object:
    """Return a Deployment of pods like `template`."""
    labels = {"app": name}
    metadata = {"labels": labels, "annotations": objects.annotations(template)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": template["spec"]},
        },
    }
