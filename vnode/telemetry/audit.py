"""Says, in one line for each change, on whose behalf the agent made it: the audit log.

An API server's own audit log has the agent as the author of all of this. Which user's pod, policy
or request made it do so only the agent knows. A controller says whose object it works on
(`on_behalf_of`), and the client of `vnode.kube` calls `changed` after an API server has accepted a
write; `opened` is for streams. Lines name objects, and have nothing of what is in them.

Not told: heartbeats, Events, reviews, statuses; and annotations and finalizers by which the agent
keeps its books on the very object that it works for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey

NAME: Final = "vnode.audit"
"""The logger."""

_LONGEST: Final = 253  # characters of a name
_UNTOLD: Final = frozenset({"events", "leases", "clustersummaries"})
_BOOKS: Final = frozenset(
    {"annotations", "finalizers", "managedFields", "uid", "resourceVersion", "labels"}
)

OFF: Final = logging.CRITICAL + 1
"""The logger's level until an agent opens the log (`vnode.telemetry.audit_log`)."""

log = logging.getLogger(NAME)
log.setLevel(OFF)


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The object because of which the agent acts, as far as one is known."""

    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    cluster: str = ""
    """Of an object that another cluster sent: what that one calls itself."""
    author: str = ""
    """Who created it, where the agent has that signed by the API server's word."""
    sources: tuple[str, ...] = ()
    """Of an object that another cluster sent: by which Sources it may have been made here."""
    reason: str = ""

    def __str__(self) -> str:
        parts = [self.kind, objects.join_key(self.namespace, self.name)]
        parts += [f"of {self.cluster}"] if self.cluster else []
        parts += [f"by {self.author}"] if self.author else []
        parts += [f"by {' or '.join(self.sources)}"] if self.sources else []
        return " ".join(parts)

    def because(self, reason: str) -> Subject:
        """Return the same subject with a reason."""
        return msgspec.structs.replace(self, reason=reason)


class AuditedObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was changed, in the words of Kubernetes' own audit log."""

    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{resource} {objects.join_key(self.namespace, self.name)}"


AGENT: Final = Subject("Agent", name="vnode")
"""For what the agent needs itself: its certificates and keys."""

UNKNOWN: Final = "nobody known"
"""In place of a subject where the agent has none, which is a fault of its own."""

_subject: ContextVar[Subject | None] = ContextVar("audit_subject", default=None)


def subject(
    kind: Kind, key: str, obj: Object | None = None, *, uid: str = "", author: str = ""
) -> Subject:
    """Return the subject for the object of that key; its UID is known if the object is."""
    namespace, name = objects.split_key(key)
    return Subject(kind.kind, namespace, name, uid or objects.uid(obj or {}), author=author)


def of(kind: Kind, obj: Object) -> Subject:
    """Return the subject for an object."""
    return subject(kind, objects.key(obj), obj)


def of_target(key: TargetKey | None, target: Object | None = None) -> Subject:
    """Return the subject for a Target or ClusterTarget; the agent itself if it is not known."""
    if key is None:
        return AGENT

    return subject(kinds.scoped(kinds.TARGETS, key.namespace), str(key), target)


def of_chaperon(
    key: str, chaperon: Object, uid: str = "", sources: tuple[str, ...] = ()
) -> Subject:
    """Return the subject for a PodChaperon, with the cluster whose pod it is, as it says."""
    found = subject(kinds.POD_CHAPERONS, key, chaperon, uid=uid)
    cluster = objects.labels(chaperon).get(keys.PARENT_CLUSTER_NAME, "")
    return msgspec.structs.replace(found, cluster=cluster, sources=sources)


def of_delegate(pod: Object) -> Subject:
    """Return the subject for the PodChaperon of a delegate, which has the same name and labels."""
    return of_chaperon(objects.key(pod), pod, objects.controller_uid(pod))


def of_reference(reference: Object) -> Subject:
    """Return the subject for the object of an ObjectReference."""
    fields = ("kind", "namespace", "name", "uid")
    kind, namespace, name, uid = (str(reference.get(field, "")) for field in fields)
    return Subject(kind, namespace, name, uid)


def finder(kind: Kind, find: Callable[[str], Object | None]) -> Callable[[str], Subject]:
    """Return what makes subjects of the keys of a controller whose objects `find` returns."""
    return lambda key: subject(kind, key, find(key))


def agent(_key: object) -> Subject:
    """Return the agent itself, for controllers that say below on whose behalf they write."""
    return AGENT


@contextmanager
def on_behalf_of(subject: Subject) -> Iterator[None]:
    """Have all that is changed inside, also by tasks that begin there, told as done for it."""
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


def current() -> Subject | None:
    """Return on whose behalf the present task works."""
    return _subject.get()


def changed(
    verb: str,
    kind: Kind,
    answer: Object,
    *,
    cluster: str,
    namespace: str,
    name: str,
    subresource: str | None = None,
    body: Any = None,
) -> None:
    """Write the line for a change that an API server has accepted.

    Without a name it is what the body or else the answer says, of which nothing is believed to be
    of a certain form: it may be a hostile target's.
    """
    if not log.isEnabledFor(logging.INFO):
        return

    if subresource == "status" or kind.plural in _UNTOLD or kind.kind.endswith("Review"):
        return

    behalf, uid = _subject.get(), _uid_of(answer, body)
    if verb == "patch" and behalf is not None and behalf.uid == uid and _is_bookkeeping(body):
        return

    name = name or _text(body, "name") or _text(answer, "name")
    obj = AuditedObject(kind.plural, kind.group, subresource or "", namespace, name, uid)
    _write(verb, obj, cluster, {})


def opened(stream: str, pod: Object, *, cluster: str, container: str = "", length: int = 0) -> None:
    """Write the line for a stream that was opened to a pod; `length` is that of its command."""
    if not log.isEnabledFor(logging.INFO):
        return

    namespace, name, uid = objects.namespace(pod), objects.name(pod), objects.uid(pod)
    obj = AuditedObject("pods", "", stream, namespace, name, uid)
    extra: dict[str, Any] = {"container": container} if container else {}
    if length:
        extra["commandLength"] = length

    _write("open", obj, cluster, extra)


def _write(verb: str, obj: AuditedObject, cluster: str, extra: dict[str, Any]) -> None:
    behalf = _subject.get()
    fields = {"verb": verb, "cluster": cluster, "object": obj, "onBehalfOf": behalf, **extra}
    level = logging.INFO if behalf is not None else logging.ERROR  # a fault: tests look for it
    log.log(level, "%s %s in %s for %s", verb, obj, cluster, behalf or UNKNOWN, extra=fields)


def _uid_of(answer: Object, body: Any) -> str:
    """Return the UID of what was changed: of the answer, a Status' details, or what was asked."""
    if uid := _text({"metadata": answer.get("details")}, "uid") or _text(answer, "uid"):
        return uid

    asked = body if isinstance(body, dict) else {}
    options = asked.get("deleteOptions") or asked  # of an Eviction, or of a deletion
    return _text(asked, "uid") or _text({"metadata": options.get("preconditions")}, "uid")


def _text(obj: Any, field: str) -> str:
    """Return a field of the metadata of what may be no object, "" if it is no text."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return found[:_LONGEST] if isinstance(found, str) else ""


def _is_bookkeeping(body: Any) -> bool:
    return (
        isinstance(body, dict)
        and body.keys() <= {"metadata"}
        and objects.metadata(body).keys() <= _BOOKS
        and objects.labels(body).keys() <= {keys.HAS_FINALIZER}
    )
