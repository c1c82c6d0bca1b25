"""Checks which cluster answers behind the credentials of a Target, and whether it is the right one.

A Secret can come to hold the kubeconfig of another cluster, and an address can come to lead to one.
An object that is missing there then says nothing about the former cluster: a pod whose chaperon the
other cluster lacks still runs. So a Target records its cluster, by the UID of the namespace
kube-system, in `status.clusterUID`. A connection that finds another one watches nothing there, and
so concludes, creates and deletes nothing, until the annotation `vnode.dev/confirm-cluster` names
it.

A vnode agent writes the UID on its ClusterSummary. Where another agent runs, the namespace itself
is read, which most credentials may not do: such a cluster is unknown. An unknown cluster is
accepted as long as the Target has recorded none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects, shapes
from vnode.api.errors import Denied, NotFound, Unreachable
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.kube import answer_limits, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.kube.decoding import Kept
from vnode.kube.endpoint import Endpoint
from vnode.kube.namespace_scope import EVERYTHING, NamespaceScope
from vnode.runtime.link_health import CONNECTING, OTHER_CLUSTER

UNKNOWN: Final = "unknown"
"""The value of the annotation that allows a cluster which does not say which one it is."""
CLUSTER_UNKNOWN: Final = "ClusterUnknown"
REFUSED: Final = frozenset({OTHER_CLUSTER, CLUSTER_UNKNOWN})
"""Reasons of the health of a target that waits for the annotation."""
NO_SUMMARY: Final = "NoSummary"
SOURCE_ITSELF: Final = "SourceItself"

_UID: Final = re.compile(r"[A-Za-z0-9-]{1,63}")

_CHECKED: Final = frozenset({kinds.POD_CHAPERONS, kinds.CLUSTER_SUMMARIES, *kinds.FOLLOWING})
"""Kinds of which an absent object leads to a conclusion."""


class NotRecognized(Unreachable):
    """The cluster that answers is not that of the Target, which thus cannot be reached."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason  # of the Target's health


@dataclass(frozen=True, slots=True)
class Expected:
    """The UID of the cluster that a Target has recorded, "" if none, and the UID that its
    annotation allows instead."""

    recorded: str = ""
    confirmed: str = ""


def recorded(target: Object) -> str:
    """Return the UID of the cluster that a Target has recorded, "" if none."""
    return str(objects.status(target).get("clusterUID") or "")


def expected(target: Object, remembered: str = "") -> Expected:
    """Return what a Target allows; `remembered` is a UID that its status does not have yet."""
    confirmed = objects.annotations(target).get(keys.CONFIRM_CLUSTER, "")
    return Expected(recorded(target) or remembered, confirmed)


def to_record(target: Object, found: str) -> str:
    """Return the UID to write into the status of a Target that was found to be that cluster; "" if
    none.

    A UID that contradicts the status is not written: another leader may have found it later than
    this one.
    """
    limits = expected(target)
    allowed = (limits.confirmed, limits.recorded or found)
    is_new = found and found != limits.recorded and found in allowed
    return found if is_new else ""


def uid_from(summary: Object | None) -> str | None:
    """Return the UID of the cluster that a ClusterSummary names; "" if it names none, None without
    one."""
    if summary is None or not shapes.is_summary(summary):
        return None

    uid = objects.annotations(shapes.trim_summary(summary)).get(keys.CLUSTER_UID, "")
    return uid if _UID.fullmatch(uid) else ""


def refusal(target: TargetKey, expected: Expected, uid: str | None) -> NotRecognized | None:
    """Return why the cluster with that UID must not be used; None if it may be.

    The UID is "" if the cluster does not tell it, None if it may still do so.
    """
    if expected.recorded in ("", uid) or (uid and uid == expected.confirmed):
        return None

    if uid is None:
        return NotRecognized(
            NO_SUMMARY,
            "the target has no ClusterSummary, which names its cluster and capacity: check "
            "that its agent runs",
        )

    if uid:
        return NotRecognized(
            OTHER_CLUSTER,
            f"another cluster answers: {uid} (the UID of its namespace kube-system), and not "
            f"{expected.recorded}. Have its Secret or ClusterProfile lead there again. Or, if "
            f"this Target is to be the other cluster from now on: {_command(target, uid)}; pods "
            "that were sent are then replaced, and their delegates in the former cluster run on "
            "until a Target leads there",
        )

    if expected.confirmed == UNKNOWN:
        return None

    return NotRecognized(
        CLUSTER_UNKNOWN,
        f"the target does not say which cluster it is, and was {expected.recorded} before (the UID "
        "of its namespace kube-system): see that the kubeconfig leads to that cluster, and that "
        "vnode's agent runs there. Or, if this Target is to be whatever answers: "
        f"{_command(target, UNKNOWN)}",
    )


def _command(target: TargetKey, value: str) -> str:
    kind = f"-n {target.namespace} target" if target.namespace else "clustertarget"
    return f"kubectl annotate --overwrite {kind} {target.name} {keys.CONFIRM_CLUSTER}={value}"


class Recognition:
    """Knows which cluster answers on one connection.

    `recognized` is set once the cluster is one that `expected` allows; until then nothing there may
    be watched. `changed` is set if it turns into another one later: then the connection ends, for a
    new one to begin with nothing known. `on_uid` is called with the cluster's UID.
    """

    def __init__(
        self,
        target: TargetKey,
        expected: Callable[[], Expected],
        on_uid: Callable[[str], None],
        *,
        own_uid: str | None = None,
        not_uid: str = "",
    ) -> None:
        self.recognized = asyncio.Event()
        self.changed = asyncio.Event()
        self.uid = ""  # of the cluster recognized, "" while unknown; never changes after that
        self._target = target
        self._expected = expected
        self._on_uid = on_uid
        self._own_uid = own_uid  # of a cluster that is its own target
        self._not_uid = not_uid  # of the source, where the target must be another cluster
        self._may_read = True  # no read of the namespace kube-system was refused so far

    async def recognize(self, client: Client, summary: Object | None) -> None:
        """Judge the cluster that has just sent that summary; NotRecognized if it is not the right
        one."""
        uid = await self._uid_of(client, summary)
        refused = refusal(self._target, self._expected(), uid)
        if uid and uid == self._not_uid:
            refused = NotRecognized(
                SOURCE_ITSELF,
                "the ClusterProfile leads to this cluster itself, which sends pods: name a profile "
                "of another cluster, or set self: true instead of clusterProfile",
            )

        if refused is None and self.uid and uid and uid != self.uid:
            refused = NotRecognized(CONNECTING, "connecting to the cluster that was confirmed")

        if refused is not None:
            if self.recognized.is_set() and refused.reason != NO_SUMMARY:
                self.changed.set()

            raise refused

        if uid and not self.uid:
            self.uid = uid
            self._on_uid(uid)

        self.recognized.set()

    async def check(self, client: Client) -> None:
        """Raise NotRecognized unless the cluster that answers now is the one recognized."""
        try:
            summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        except NotFound:
            summary = None

        allowed = self._expected().confirmed
        limits = Expected(self.uid, UNKNOWN if allowed == UNKNOWN else "")
        refused = refusal(self._target, limits, await self._uid_of(client, summary))
        if refused is not None:
            raise refused

    async def _uid_of(self, client: Client, summary: Object | None) -> str | None:
        if self._own_uid is not None:
            return self._own_uid

        uid = uid_from(summary)
        return uid or await self._read_uid(client) or uid

    async def _read_uid(self, client: Client) -> str:
        """Read the UID, for targets whose agent does not write it into the summary."""
        if self._may_read:
            try:
                found = objects.uid(await client.get(kinds.NAMESPACES, "kube-system"))
                return found if _UID.fullmatch(found) else ""
            except (Denied, NotFound):
                self._may_read = False

        return ""


class RecognizedClient(Client):
    """The client of a target: takes no list from another cluster than the one recognized.

    A broken watch is followed by a list, and what is not in the list counts as deleted.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        recognition: Recognition,
        *,
        name: str,
        scope: NamespaceScope = EVERYTHING,
    ) -> None:
        super().__init__(endpoint, name=name, scope=scope)
        self._recognition = recognition

    async def list_at(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        limit: AnswerLimit | None = None,
        kept: Kept = decoding.whole,
    ) -> tuple[Objects, str]:
        """List as every client does, bounded in any case.

        NotRecognized if another cluster may have sent the list.
        """
        found = await super().list_at(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
            limit=limit or answer_limits.LIST,
            kept=kept,
        )
        if kind in _CHECKED and self._recognition.uid:
            await self._recognition.check(self)

        return found
