"""Tells the spans of proxy pods: scheduling, candidates, binding, start, run and end.

Watches what informers show of pods and candidates, and what each scheduling cycle finds; nothing is
read or written for it. A span is told when its step is over. Times are those at which this agent
saw a change, since those on objects have whole seconds only. What a former leader saw is not known:
spans of steps that began under it are left out, but for the root, whose start is on the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, objects, permissions, route, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Handler
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import sleep_forever
from vnode.scheduling.result import CycleResult
from vnode.telemetry import spans
from vnode.telemetry.span_sender import SpanSender
from vnode.telemetry.spans import Attributes, Span, SpanEvent, SpanLink

TRACEPARENT: Final = "traceparent"
"""The annotation by which a CI system names the span in which it has made a pod."""
MOST_NODES: Final = 16
"""Nodes of each sort that the span of a scheduling cycle names."""


@dataclass(slots=True)
class _CandidateTrace:
    """What was seen of one candidate."""

    start: float
    events: dict[str, SpanEvent] = field(default_factory=dict)  # by name: of each the first


@dataclass(slots=True)
class _ProxyTrace:
    """What was seen of one pod; times are Unix seconds, 0.0 for what was not seen."""

    key: str
    created: float
    attributes: Attributes
    links: tuple[SpanLink, ...]
    asked: float = 0.0  # end of the last scheduling cycle
    reserved: float = 0.0
    bound: float = 0.0
    started: float = 0.0
    ending: float = 0.0
    has_started: bool = False
    candidates: dict[str, _CandidateTrace] = field(default_factory=dict)  # by their UID


class ProxySpans:
    """Watches the proxies of a term; `subscribe_pods` has a handler called for changes of them."""

    def __init__(
        self,
        sender: SpanSender,
        links: Links,
        subscribe_pods: Callable[[Handler], None],
        clock: Clock,
    ) -> None:
        self._sender = sender
        self._links = links
        self._subscribe_pods = subscribe_pods
        self._clock = clock
        self._traces: dict[str, _ProxyTrace] = {}  # by UID; goes with the pod

    async def run(self) -> None:
        """Watch until cancelled."""
        self._subscribe_pods(self.on_pod)
        self._links.subscribe(self._on_link, lambda _link: None)
        await sleep_forever()

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda old, new: self.on_chaperon(link, old, new))

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Note a pod as it is now, and tell the steps that are over."""
        pod = objects.latest(old, new)
        uid = objects.uid(pod)
        if not self._sender.is_traced(uid):
            return

        now = self._now()
        trace = self._traces.get(uid)
        if trace is None:
            if new is None:
                return

            trace = self._traces[uid] = _first_seen(new, now)
            if objects.has_run(new) or objects.is_terminating(new):  # under a former leader
                trace.has_started = True
                return

        if new is None:
            del self._traces[uid]
            self._tell_gone(uid, trace, now)
        else:
            self._tell_changes(uid, trace, new, now)

    def on_cycle(self, pod: Object, result: CycleResult, seconds: float) -> None:
        """Tell what a scheduling cycle has found, which took so many seconds and is over."""
        uid = objects.uid(pod)
        trace = self._traces.get(uid)
        if trace is None:
            return

        now = self._now()
        trace.asked = now
        chosen = tuple(scored.name for scored in result.feasible[:MOST_NODES])
        attributes = {**trace.attributes, "vnode.nodes.feasible": chosen}
        events = tuple(_found(result, now))
        error = "" if result.feasible else result.status.message
        span = spans.child(
            uid, "schedule", now - seconds, now, attributes, events=events, error=error
        )
        self._sender.put(span)

    def on_chaperon(self, link: Link, old: Object | None, new: Object | None) -> None:
        """Note a candidate as it is now, and tell its span once it is allowed or gone."""
        chaperon = objects.latest(old, new)
        uid = objects.labels(chaperon).get(keys.PARENT_UID, "")
        trace = self._traces.get(uid)
        if trace is None or not link.is_candidate(chaperon, trace.key, uid):
            return

        now, made = self._now(), objects.uid(chaperon)
        candidate = trace.candidates.get(made)
        if candidate is None:
            if new is None or trace.has_started:
                return

            candidate = _CandidateTrace(_since(trace, new, now))
            trace.candidates[made] = candidate

        annotations, events = objects.annotations(chaperon), candidate.events
        if keys.IS_RESERVED in annotations and "reserved" not in events:
            events["reserved"] = SpanEvent("reserved", now)
            trace.reserved = now

        message = scheduled_condition.rejection(objects.status(chaperon))
        if message is not None and "rejected" not in events:
            words = {"vnode.message": message[: spans.LONGEST]}
            events["rejected"] = SpanEvent("rejected", now, words)

        is_told = "allowed" in events
        if permissions.is_allowed(chaperon) and not is_told:
            events["allowed"] = SpanEvent("allowed", now)
            self._tell_candidate(uid, trace, made, link, "allowed", now)
        elif new is None:
            if not is_told:
                outcome = "rejected" if "rejected" in events else "deleted"
                self._tell_candidate(uid, trace, made, link, outcome, now)

            del trace.candidates[made]

    def _tell_candidate(
        self, uid: str, trace: _ProxyTrace, made: str, link: Link, outcome: str, now: float
    ) -> None:
        candidate = trace.candidates[made]
        attributes = {
            **trace.attributes,
            "k8s.node.name": link.node_name,
            "vnode.target": str(link.target),
            "vnode.outcome": outcome,
        }
        self._sender.put(
            Span(
                "candidate",
                spans.trace_id(uid),
                spans.candidate_id(uid, made),
                spans.root_id(uid),
                min(candidate.start, now),
                now,
                attributes,
                tuple(candidate.events.values()),
            )
        )

    def _tell_changes(self, uid: str, trace: _ProxyTrace, pod: Object, now: float) -> None:
        node = objects.node_name(pod)
        attributes = {**trace.attributes, "k8s.node.name": node} if node else trace.attributes
        if node and not trace.bound:
            trace.bound = now
            begun = trace.reserved or trace.asked
            if begun and not trace.has_started:
                placed = objects.annotations(pod).get(keys.PLACED)
                more = {"vnode.placed": placed[: spans.LONGEST]} if placed else {}
                self._tell(uid, "bind", begun, now, {**attributes, **more})

        if objects.has_run(pod) and not trace.has_started:
            trace.has_started, trace.started = True, now
            if trace.bound:
                self._tell(uid, "start", trace.bound, now, attributes)

            self._tell_root(uid, trace, now, {**attributes, "vnode.outcome": "started"})

        is_over = objects.is_finished(pod) or objects.is_terminating(pod)
        if is_over and trace.started:
            phase = str(objects.status(pod).get("phase"))
            self._tell(uid, "run", trace.started, now, {**attributes, "k8s.pod.phase": phase})
            trace.started = 0.0

        if objects.is_terminating(pod) and not trace.ending:
            trace.ending = now

    def _tell_gone(self, uid: str, trace: _ProxyTrace, now: float) -> None:
        if not trace.has_started:
            attributes = {**trace.attributes, "vnode.outcome": "deleted"}
            self._tell_root(uid, trace, now, attributes)

        if trace.ending:
            self._tell(uid, "end", trace.ending, now, trace.attributes)

    def _tell(self, uid: str, name: str, start: float, end: float, attributes: Attributes) -> None:
        self._sender.put(spans.child(uid, name, start, end, attributes))

    def _tell_root(self, uid: str, trace: _ProxyTrace, now: float, attributes: Attributes) -> None:
        """Tell the root: from the pod's creation to the start of its containers."""
        trace_id, root, start = spans.trace_id(uid), spans.root_id(uid), min(trace.created, now)
        self._sender.put(Span("pod", trace_id, root, 0, start, now, attributes, (), trace.links))

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _first_seen(pod: Object, now: float) -> _ProxyTrace:
    created, labels = objects.created_at(pod), objects.labels(pod)
    links = spans.link_of(objects.annotations(pod).get(TRACEPARENT, ""))
    if route.is_delegate(pod):  # it came from another source, which has a trace of its own
        links += spans.link_of_pod(labels.get(keys.PARENT_UID, ""))

    attributes = {
        "k8s.pod.name": objects.name(pod),
        "k8s.namespace.name": objects.namespace(pod),
        "k8s.pod.uid": objects.uid(pod),
    }
    return _ProxyTrace(objects.key(pod), created.timestamp() if created else now, attributes, links)


def _since(trace: _ProxyTrace, chaperon: Object, now: float) -> float:
    """Return when a candidate was made: not before the cycle that wanted it was over."""
    created = objects.created_at(chaperon)  # in whole seconds, by another cluster's clock
    return max(trace.asked, min(created.timestamp(), now)) if created else now


def _found(result: CycleResult, now: float) -> Iterator[SpanEvent]:
    for scored in result.feasible[:MOST_NODES]:
        yield SpanEvent("scored", now, {"k8s.node.name": scored.name, "vnode.score": scored.total})

    for node in list(result.statuses)[:MOST_NODES]:
        status = result.statuses[node]
        words: Attributes = {
            "k8s.node.name": node,
            "vnode.plugin": status.plugin,
            "vnode.message": status.message[: spans.LONGEST],
        }
        yield SpanEvent("rejected", now, words)
