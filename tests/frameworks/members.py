"""Pods of jobs whose members look for each other by name, as they do within one cluster.

Each serves a page with its name, and asks the others for theirs until it has heard of all. Its log
then says so; it is read in the source, where the job is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

TARGETS: Final = {names.virtual_node("default", name): name for name in ("c2", "c3")}
"""The names of targets by those of their virtual nodes."""
_HEARD_OF_ALL: Final = "heard of all"


ASK: Final = (
    "find() { for name in $1 $(sed -n 's/^search//p' /etc/resolv.conf | sed \"s/ / $1./g\"); do "
    "nslookup $name 2>/dev/null | sed -n 's/^Address: //p'; done | head -n 1; }; "
    'ask() { at=$(find $1); [ -n "$at" ] && timeout 5 wget -q -O - http://$at:8080/name; }; '
)
"""What asks a name for its page.

It looks the name up in the domains of the resolver, since busybox adds these to no name that has a
dot. The wget of Debian's busybox crashes with a time-out of its own.
"""


def script(*others: str, then: str = "exec sleep 100000") -> str:
    """Return a line of shell that runs until all of these names have answered, and what is `then`.

    Variables in the names are those of the container.
    """
    return (
        "mkdir -p /tmp/www; hostname > /tmp/www/name; httpd -p 8080 -h /tmp/www; "
        f"{ASK} for other in {' '.join(others)}; do "
        "until found=$(ask $other); do sleep 1; done; "
        f'echo "$other is $found"; done; echo {_HEARD_OF_ALL}; {then}'
    )


def container(name: str, line: str, **more: Any) -> Object:
    """Return a container that runs a line of shell and asks for little."""
    return {
        "name": name,
        "image": "busybox",
        "command": ["sh", "-c", line],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        **more,
    }


def template(*containers: Object, **spec: Any) -> Object:
    """Return the template of an elected pod, which ends soon after it is told to."""
    return {
        "metadata": {"annotations": {keys.ELECT: ""}},
        "spec": {"containers": list(containers), "terminationGracePeriodSeconds": 1, **spec},
    }


async def until_running(client: Client, selector: str, count: int) -> dict[str, Object]:
    """Watch pods until exactly so many run, and return them by name."""
    found = await kit.until(
        client,
        kinds.PODS,
        lambda pods: kit.running(pods, count),
        namespace="default",
        label_selector=selector,
    )
    return {objects.name(pod): pod for pod in found.values()}


def target_of(pods: dict[str, Object]) -> str:
    """Return the name of the only target of some pods."""
    (node,) = {objects.node_name(pod) for pod in pods.values()}
    return TARGETS[node]


async def until_back(
    client: Client, selector: str, before: dict[str, Object], *lost: str
) -> dict[str, Object]:
    """Watch pods until as many run as before, none of which is one of those that were lost."""
    gone = {objects.uid(before[name]) for name in lost}
    found = await kit.until(
        client,
        kinds.PODS,
        lambda pods: (
            kit.running(pods, len(before))
            and gone.isdisjoint(objects.uid(pod) for pod in pods.values())
        ),
        namespace="default",
        label_selector=selector,
    )
    return {objects.name(pod): pod for pod in found.values()}


@asynccontextmanager
async def log(fleet: Fleet, pod: str) -> AsyncIterator[AsyncIterator[str]]:
    """Yield the lines of a pod's log as they come, read in the source."""
    process = await asyncio.create_subprocess_exec(
        *fleet.kubectl_command("c1"), "logs", "--follow", pod, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    lines = process.stdout
    try:
        async with asyncio.timeout(kit.PATIENCE):
            yield (line.decode().strip() async for line in lines)
    finally:
        with suppress(ProcessLookupError):
            process.kill()

        await process.wait()


async def heard(fleet: Fleet, pod: str) -> set[str]:
    """Return who has answered a pod, by name, once all have."""
    answers = set()
    async with log(fleet, pod) as lines:
        async for text in lines:
            if text == _HEARD_OF_ALL:
                return answers

            answers.add(text.rpartition(" is ")[2])

    raise AssertionError(f"the log of {pod} ended: {answers}")
