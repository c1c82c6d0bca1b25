"""Reads usage from the target's kubelets through its API server: `nodes/NAME/proxy/...`.

That takes the right to `get` `nodes/proxy`, which also gives access to every container of the
target; vnode's roles do not grant it, and this is used only where an administrator did.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import access_review, answer_limits
from vnode.kube.client import Client
from vnode.kubelet.usage import points
from vnode.kubelet.usage.findings import Findings, PodKey
from vnode.kubelet.usage.points import Total

_AT_ONCE: Final = 8  # requests to one target
_TIMEOUT: Final = 5.0  # seconds for one node
_OTHER_PATH: Final = "metrics.k8s.io/resource-metrics-path"  # annotation, metrics-server's
_PATH: Final = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")
_CPU: Final = "_cpu_usage_seconds_total"
_MEMORY: Final = "_memory_working_set_bytes"
_LINE: Final = re.compile(
    # The longest names make 600 characters. The parser's time grows with the square of the labels.
    rf"^(?:node|pod|container)(?:{_CPU}|{_MEMORY})\b.{{0,1000}}$",
    re.MULTILINE,
)
_MOST: Final = 10_000  # lines of one node: 500 pods of ten containers
_PAUSE: Final = 20  # lines between pauses: a millisecond, or thirty if they are full of labels
_PIECE: Final = 128 * 1024  # characters that are searched at once


async def may_read(client: Client) -> bool:
    """Tell whether the target allows us to read its kubelets. Raises what the client raises."""
    for verb, subresource in (("get", "proxy"), ("list", "")):
        attributes = {"verb": verb, "resource": kinds.NODES.plural, "subresource": subresource}
        if not await access_review.may(client, attributes):
            return False

    return True


async def read(
    client: Client, wanted: Collection[PodKey], now: Callable[[], float], findings: Findings
) -> None:
    """Read the metrics of every node of the target; one that does not answer is noted as a problem.

    Raises what the client raises if the nodes cannot be listed.
    """
    nodes = await client.list(kinds.NODES, label_selector=keys.REAL_NODES)
    left = iter(nodes)

    async def read_next() -> None:
        for node in left:
            await _read_node(client, node, wanted, now, findings)

    async with asyncio.TaskGroup() as group:  # few tasks: a target may say that it has any number
        for number in range(min(_AT_ONCE, len(nodes))):
            group.create_task(read_next(), name=f"target-kubelets-{number}")


async def _read_node(
    client: Client,
    node: Object,
    wanted: Collection[PodKey],
    now: Callable[[], float],
    findings: Findings,
) -> None:
    try:
        metadata = msgspec.convert(objects.metadata(node), _NodeMetadata)
        async with asyncio.timeout(_TIMEOUT):
            text = await client.text(_metrics_path(metadata), limit=answer_limits.KUBELET_METRICS)
    except (VnodeError, TimeoutError, msgspec.ValidationError) as error:
        findings.problem(f"a node: {str(error) or 'no answer in time'}")
        await asyncio.sleep(0)  # nothing was waited for, if it has no name
        return

    await parse(text, metadata.name, now(), wanted, findings)


class _NodeMetadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] | None = None


def _metrics_path(node: _NodeMetadata) -> str:
    path = (node.annotations or {}).get(_OTHER_PATH, "")
    safe = path if _PATH.fullmatch(path) else "/metrics/resource"
    return kinds.NODES.path(name=node.name, subresource="proxy") + safe


async def parse(
    text: str, node: str, now: float, wanted: Collection[PodKey], findings: Findings
) -> None:
    """Note a kubelet's samples of the node and of wanted pods; `now` replaces a missing time.

    CPU without memory, or memory without CPU, is left out; so is a line that cannot be parsed, or
    is longer than any, or one of too many.
    """
    cpu: dict[tuple[str, str, str], tuple[float, float]] = {}
    memory: dict[tuple[str, str, str], int] = {}
    names = {name for _namespace, name in wanted}
    async for line in _lines(text, names):
        for sample in _samples(line, findings, node):
            labels = sample.labels
            key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
            if sample.name.endswith(_CPU):
                cpu[key] = (sample.value, float(sample.timestamp or now))
            elif sample.name.endswith(_MEMORY):
                memory[key] = int(min(sample.value, 2**63))

    for key in cpu.keys() & memory.keys():
        total = Total(cpu[key][1], cpu[key][0], memory[key])
        namespace, pod, container = key
        if not pod:
            findings.node(node, total)
        elif (namespace, pod) in wanted:
            if container:
                findings.container((namespace, pod), container, total)
            elif points.is_plausible(total):
                findings.pod((namespace, pod)).whole = total


async def _lines(text: str, pods: Collection[str]) -> AsyncIterator[str]:
    """Yield the lines of wanted families that are of no pod or a wanted one, with pauses."""
    start = found = 0
    while start < len(text) and found < _MOST:
        end = text.find("\n", start + _PIECE)
        end = len(text) if end < 0 else end
        for line in _LINE.findall(text, start, end):
            if _concerns(line, pods):
                found += 1
                yield line
                if found % _PAUSE == 0:
                    await asyncio.sleep(0)

        start = end
        await asyncio.sleep(0)


def _concerns(line: str, pods: Collection[str]) -> bool:
    """Tell, before parsing, whether a line is of no pod or a wanted one."""
    _before, named, rest = line.partition('pod="')
    return not named or rest.partition('"')[0] in pods


def _samples(line: str, findings: Findings, node: str) -> Iterator[Sample]:
    try:
        for family in text_string_to_metric_families(line + "\n"):
            yield from (s for s in family.samples if s.value >= 0)  # NaN is not
    except ValueError as error:
        findings.problem(f"node {node}: a line cannot be read: {error}")
