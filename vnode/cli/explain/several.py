"""Explains pods: one that is named by itself, or several, such as those of a Deployment.

The pods come from the source. Of several, those that run there as they should need no more; of the
others the targets are asked, over one connection to each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object, Objects
from vnode.cli import suggestions
from vnode.insight import (
    collecting,
    failing,
    named_pods,
    owner_cures,
    owners,
    status_text,
    story,
    target_clients,
)
from vnode.insight.named_pods import NamedResource
from vnode.insight.story import Story
from vnode.insight.verdicts import PodState, Verdict
from vnode.kube.client import Client
from vnode.kube.events import WARNING
from vnode.targets import model

MOST: Final = 30  # pods of which targets are asked
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class PodStories:
    """The stories of the pods that were asked for, and what else is to be said of them."""

    stories: tuple[Story, ...]
    notes: tuple[str, ...]
    """About owners without pods, and pods that were not looked at."""
    now: datetime


async def explain(
    client: Client,
    wanted: Sequence[NamedResource],
    namespace: str,
    *,
    agent_namespace: str,
    clock: Clock,
) -> PodStories:
    """Explain the pods, and those of owners; ConfigError for a name that does not exist."""
    notes = []
    pods: dict[str, Object] = {}
    for each in wanted:
        try:
            found = await _pods(client, each, namespace)
        except ConfigError as error:
            is_first = each is wanted[0] and len(wanted) > 1  # as in `deployment web`
            if not is_first or not (meant := suggestions.mistyped(each.name, named_pods.KINDS)):
                raise

            raise ConfigError(f"{error}. Did you mean {meant!r}?") from error

        pods |= {objects.name(pod): pod for pod in found}
        if each.kind != named_pods.POD and (
            note := await _lacking(client, each, namespace, len(found))
        ):
            notes.append(note)

    now, is_one = clock.now(), named_pods.is_one_pod(wanted)
    fine = {name for name, pod in pods.items() if not is_one and _is_fine(pod, now)}
    asked = [name for name in sorted(pods) if name not in fine]
    if len(asked) > MOST:
        notes.append(f"{len(asked) - MOST} more pods are not fine, and were not looked at")

    async with AsyncExitStack() as stack:
        connect, slots = _Connections(stack).connected, asyncio.Semaphore(_AT_ONCE)

        async def tell(name: str) -> Story:
            async with slots:
                facts = await collecting.collect(
                    client,
                    name,
                    namespace,
                    agent_namespace=agent_namespace,
                    clock=clock,
                    connect=connect,
                )
                return story.build(facts)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(tell(name), name=f"explain {name}") for name in asked[:MOST]]

    told = (task.result() for task in tasks)
    return PodStories((*told, *(_fine(pods[name]) for name in sorted(fine))), tuple(notes), now)


async def _pods(client: Client, named: NamedResource, namespace: str) -> Objects:
    if named.kind == "cronjob":
        jobs = await owners.jobs_of(client, named.name, namespace)
        pods = await client.list(kinds.PODS, namespace)
        return [pod for job in jobs for pod in named_pods.of_owner(pods, job)]

    if named.kind != named_pods.POD:
        return named_pods.of_owner(await client.list(kinds.PODS, namespace), named)

    try:
        return [await collecting.get_pod(client, named.name, namespace)]
    except ConfigError as error:
        if not (others := await owners.of_name(client, named.name, namespace)):
            raise

        raise ConfigError(
            f"{error}, but there is {others[0]}: vnode explain {others[0]}"
        ) from error


async def _lacking(client: Client, owner: NamedResource, namespace: str, count: int) -> str:
    """Return why an owner has no pods, or fewer than it wants; ConfigError if there is no such
    owner, "" if it has all."""
    nothing = "" if count else f"{owner} has no pods in namespace {namespace}"
    if (kind := owners.KINDS.get(owner.kind)) is None:
        if nothing and (meant := suggestions.mistyped(owner.kind, named_pods.KINDS)):
            raise ConfigError(f"{nothing}. Did you mean '{meant}/{owner.name}'?")

        return f"{nothing}: none has it as its controller" if nothing else ""

    try:
        found = await client.get(kind, owner.name, namespace)
    except Denied:
        return nothing
    except NotFound as error:
        if count:
            return ""

        raise ConfigError(
            f"there is no {owner.kind} {owner.name!r} in namespace {namespace!r}"
        ) from error

    why = await _last_warning(client, owner, namespace)
    if count:
        return owner_cures.too_few(owner, found, count, why)

    reason = owner_cures.without_pods(owner, found, why)
    return f"{nothing}: {reason}" if reason else nothing


async def _last_warning(client: Client, owner: NamedResource, namespace: str) -> str:
    """Return the last warning about an owner, or the ReplicaSets that it made; "" for none."""
    try:
        events = await client.list(kinds.EVENTS, namespace)
    except Denied:
        return ""

    def is_about(event: Object) -> bool:
        about = event.get("involvedObject") or {}
        named = NamedResource(str(about.get("kind") or "").lower(), str(about.get("name") or ""))
        is_made = named.kind == "replicaset" and named.name.startswith(f"{owner.name}-")
        return named == owner or is_made

    told = [e for e in events if e.get("type") == WARNING and is_about(e)]
    return str(max(told, key=collecting.moment).get("message") or "") if told else ""


def _is_fine(pod: Object, now: datetime) -> bool:
    """Tell whether a pod runs, or has ended well, by what the source knows."""
    if not status_text.is_proxy(pod) or objects.is_terminating(pod):
        return False

    is_running = objects.is_condition_true(pod, "Ready") and failing.find(pod, now) is None
    return is_running or objects.status(pod).get("phase") == "Succeeded"


def _fine(pod: Object) -> Story:
    if objects.status(pod).get("phase") == "Succeeded":
        verdict = Verdict(PodState.FINISHED, "the pod has ended: Succeeded")
    else:
        verdict = Verdict(PodState.RUNNING, f"the pod runs on node {objects.node_name(pod)}")

    return Story(objects.key(pod), status_text.pod_status(pod), (), verdict)


class _Connections:
    """One connection to each target, open until the end."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._clients: dict[str, Client] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def connected(self, local: Client, target: Object) -> AsyncIterator[Client]:
        key = str(model.key_of(target))
        async with self._opening:
            if key not in self._clients:
                opened = target_clients.connected(local, target)
                self._clients[key] = await self._stack.enter_async_context(opened)

        yield self._clients[key]
