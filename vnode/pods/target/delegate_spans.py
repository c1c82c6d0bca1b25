"""Tells the spans of delegates: creation, reservation, the source's word, binding, start and end.

They are below the span of their candidate, which the source's agent tells: its name follows from
the pod's UID and the chaperon's. Watches the informers of chaperons and delegates; nothing is read
or written for it. What a source wrote is believed as far as it names a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vnode.api import keys, objects, permissions, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.runtime.supervisor import sleep_forever
from vnode.telemetry import spans
from vnode.telemetry.span_sender import SpanSender
from vnode.telemetry.spans import Attributes, Span, SpanEvent


@dataclass(slots=True)
class _DelegateTrace:
    """What was seen of one chaperon and its delegate; times are Unix seconds, 0.0 for unseen."""

    parent_uid: str
    uid: str  # of the chaperon
    seen: float
    attributes: Attributes
    created: float = 0.0
    reserved: float = 0.0
    allowed: float = 0.0
    bound: float = 0.0
    ending: float = 0.0
    is_told: bool = False  # the span of the delegate
    events: dict[str, SpanEvent] = field(default_factory=dict)


class DelegateSpans:
    """Watches the chaperons and delegates of a term."""

    def __init__(
        self, sender: SpanSender, chaperons: Informer, delegates: Informer, clock: Clock
    ) -> None:
        self._sender = sender
        self._chaperons = chaperons
        self._delegates = delegates
        self._clock = clock
        self._traces: dict[str, _DelegateTrace] = {}  # by the key of the chaperon; goes with it

    async def run(self) -> None:
        """Watch until cancelled."""
        self._chaperons.subscribe(self.on_chaperon)
        self._delegates.subscribe(self.on_delegate)
        await sleep_forever()

    def on_chaperon(self, old: Object | None, new: Object | None) -> None:
        """Note a chaperon as it is now, and tell the steps that are over."""
        chaperon = objects.latest(old, new)
        uid = objects.labels(chaperon).get(keys.PARENT_UID, "")
        if not self._sender.is_traced(uid):
            return

        key, now = objects.key(chaperon), self._now()
        trace = self._traces.get(key)
        if new is None:
            if trace is not None:
                del self._traces[key]
                self._tell_gone(trace, now)

            return

        if trace is None or trace.uid != objects.uid(new):
            trace = self._traces[key] = _first_seen(new, uid, now)
            if objects.status(new).get("phase") not in (None, "Pending"):  # under a former leader
                trace.is_told = True

        self._note_words(trace, new, now)
        if objects.is_terminating(new) and not trace.ending:
            trace.ending = now

    def _note_words(self, trace: _DelegateTrace, chaperon: Object, now: float) -> None:
        """Note what extender and source have said of the place."""
        annotations = objects.annotations(chaperon)
        if keys.IS_RESERVED in annotations and not trace.reserved:
            trace.reserved = now
            self._tell(trace, "reserve", trace.created, now)

        if permissions.is_allowed(chaperon) and not trace.allowed:
            trace.allowed = now
            self._tell(trace, "await source", trace.reserved, now)

        message = scheduled_condition.rejection(objects.status(chaperon))
        if message is not None and "unschedulable" not in trace.events:
            words = {"vnode.message": message[: spans.LONGEST]}
            trace.events["unschedulable"] = SpanEvent("unschedulable", now, words)

    def on_delegate(self, old: Object | None, new: Object | None) -> None:
        """Note a delegate as it is now, and tell the steps that are over."""
        trace = self._traces.get(objects.key(objects.latest(old, new)))
        if new is None or trace is None or objects.controller_uid(new) != trace.uid:
            return

        now, node = self._now(), objects.node_name(new)
        if not trace.created:
            trace.created = now
            trace.attributes = {**trace.attributes, "k8s.pod.uid": objects.uid(new)}
            self._tell(trace, "create delegate", trace.seen, now)

        if node and not trace.bound:
            trace.bound = now
            # By messages, of which nothing shows on the chaperon: binding holds the steps before.
            trace.allowed = trace.allowed or trace.reserved or trace.created
            trace.attributes = {**trace.attributes, "k8s.node.name": node}
            self._tell(trace, "bind delegate", trace.allowed, now)

        if objects.has_run(new):
            self._tell(trace, "start containers", trace.bound, now)
            self._tell_delegate(trace, now, "started")

    def _tell_gone(self, trace: _DelegateTrace, now: float) -> None:
        self._tell_delegate(trace, now, "deleted")
        if trace.ending:
            attributes = trace.attributes
            parent = _own_id(trace)
            self._sender.put(
                spans.child(
                    trace.parent_uid, "end delegate", trace.ending, now, attributes, parent=parent
                )
            )

    def _tell(self, trace: _DelegateTrace, name: str, start: float, end: float) -> None:
        """Tell a step, if it was seen to begin, and the delegate has not started long ago."""
        if start and not trace.is_told:
            parent = _own_id(trace)
            self._sender.put(
                spans.child(trace.parent_uid, name, start, end, trace.attributes, parent=parent)
            )

    def _tell_delegate(self, trace: _DelegateTrace, now: float, outcome: str) -> None:
        """Tell the span of the delegate, once: from its chaperon to the start of containers."""
        if trace.is_told:
            return

        trace.is_told = True
        uid = trace.parent_uid
        self._sender.put(
            Span(
                "delegate",
                spans.trace_id(uid),
                _own_id(trace),
                spans.candidate_id(uid, trace.uid),
                min(trace.seen, now),
                now,
                {**trace.attributes, "vnode.outcome": outcome},
                tuple(trace.events.values()),
                is_remote=True,
            )
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _first_seen(chaperon: Object, parent_uid: str, now: float) -> _DelegateTrace:
    attributes = {
        "k8s.pod.name": objects.name(chaperon),
        "k8s.namespace.name": objects.namespace(chaperon),
        "vnode.source.cluster": objects.labels(chaperon).get(keys.PARENT_CLUSTER_NAME, ""),
        "vnode.source.pod": parent_key(chaperon),
        "vnode.source.pod.uid": parent_uid,
    }
    return _DelegateTrace(parent_uid, objects.uid(chaperon), now, attributes)


def _own_id(trace: _DelegateTrace) -> int:
    return spans.span_id(trace.parent_uid, "delegate", trace.uid)
