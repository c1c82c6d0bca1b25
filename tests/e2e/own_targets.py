"""Targets of a test's own, in a namespace of its own; the fleet's stay as they are."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from tests import background, kit
from tests.fleets import Result, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.targets import probing

AT_ONCE = 0.9 * probing.PERIOD  # seconds: before the next regular probe
GARBAGE = b"{ this is no kubeconfig"
_OTHERS = ("c2", "c3")


def ready(target: Object) -> Object:
    """Return the Ready condition, or an empty one."""
    return objects.condition(target, "Ready") or {}


def is_because(reason: str) -> Callable[[Object], bool]:
    """Return a predicate that tells whether the Ready condition has that reason."""
    return lambda target: ready(target).get("reason") == reason


@pytest.fixture
async def others_are_unaffected(source: Client) -> AsyncIterator[None]:
    """Assert that the fleet's own Targets are connected during the test.

    That one answers late is the machine's doing, which may be busy.
    """
    seen: list[Object] = []

    def on_target(_old: Object | None, new: Object | None) -> None:
        if new is not None and objects.name(new) in _OTHERS:
            seen.append(ready(new))

    targets = Informer(source, kinds.TARGETS, namespace="default")
    targets.subscribe(on_target)
    await _until_others_are_connected(source)
    async with background.running(targets.run()):
        await targets.synced.wait()
        yield
        await _until_others_are_connected(source)

    assert len(seen) >= len(_OTHERS)
    assert [each for each in seen if not _is_connected(each)] == []


async def _until_others_are_connected(source: Client) -> None:
    for name in _OTHERS:
        await kit.until_one(source, kinds.TARGETS, name, "default", is_because("Connected"))


def _is_connected(condition: Object) -> bool:
    return condition["reason"] == "Connected" or "no answer within" in condition["message"]


@pytest.fixture
async def home(source: Client) -> AsyncIterator[str]:
    """Yield a namespace in c1; when the test ends, delete it and its Targets."""
    name = await kit.namespace_for_pods(source, f"bad-{uuid.uuid4().hex[:8]}")
    yield name
    for target in await source.list(kinds.TARGETS, name):
        await source.delete(kinds.TARGETS, objects.name(target), name)

    await source.delete(kinds.NAMESPACES, name)


@pytest.fixture
async def shared(source: Client, c2: Client, c3: Client, home: str) -> AsyncIterator[str]:
    """Yield the name of a namespace that all three clusters have."""
    async with kit.namespace_in_all(home, c2, c3) as name:
        yield name


def named(name: str = "kubeconfig", **more: object) -> Object:
    """Return the spec of a Target that names a Secret."""
    return {"kubeconfigSecret": {"name": name}, **more}


async def put_secret(source: Client, home: str, kubeconfig: bytes, key: str = "config") -> None:
    """Apply the Secret that `named` names, with that kubeconfig."""
    data = {key: base64.b64encode(kubeconfig).decode()}
    metadata = {"name": "kubeconfig", "namespace": home}
    await source.apply(kinds.SECRETS, {"metadata": metadata, "data": data}, manager="test")


async def put_target(source: Client, home: str, spec: Object) -> None:
    """Apply the Target `bad` with exactly that spec: fields that it no longer has are removed."""
    metadata = {"name": "bad", "namespace": home}
    await source.apply(kinds.TARGETS, {"metadata": metadata, "spec": spec}, manager="test")


def connect(fleet: Fleet, home: str, target: str, *words: str) -> Result:
    """Run `vnode connect` for c1 and a target, as the Target `bad` unless `words` name another."""
    return vnode(
        "connect",
        "--source",
        fleet.kubeconfig("c1"),
        "--target",
        fleet.kubeconfig(target),
        "--namespace",
        home,
        "--name",
        "bad",
        *words,
    )


async def assert_connects(source: Client, home: str, seconds: float = kit.PATIENCE) -> None:
    """Assert that the Target `bad` connects within that time."""
    await kit.until_one(
        source, kinds.TARGETS, "bad", home, is_because("Connected"), seconds=seconds
    )


def admin(fleet: Fleet, name: str) -> bytes:
    """Return the kubeconfig of an administrator."""
    return fleet.kubeconfig(name).read_bytes()


def with_token(fleet: Fleet, name: str, token: str) -> bytes:
    """Return the kubeconfig of whoever has that token."""
    reach, _name = kubeconfigs.read(fleet.kubeconfig(name))
    return kubeconfigs.build(reach, token, "default")


async def run_pod(source: Client, namespace: str, name: str, **annotations: str) -> Object:
    """Return a pod of that namespace, running."""
    template = kit.pod(name, annotations={keys.ELECT: "", **annotations})
    await source.create(kinds.PODS, template, namespace)
    return await kit.until_one(
        source, kinds.PODS, name, namespace, lambda pod: kit.phase(pod) == "Running"
    )
