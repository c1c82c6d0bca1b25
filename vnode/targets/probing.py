"""Probes whether a target answers, and lets us do what we must: the source of a virtual node's
Ready.

A probe reads the target's ClusterSummary (reachable? trusted? installed? the cluster that this
Target is?) and, for a Target with a namespace, asks for a chaperon to be created there by a dry run
(allowed? does the namespace exist?). What is allowed seldom ceases to be, and then the next
candidate is refused: so after a good answer that is asked once a minute only, or at once if there
is a reason to, such as a refused candidate (`Link.doubt`).

One lost answer, or one error of the server, is not an outage: a target is unhealthy after two
failures in a row, which takes less than 25 s from the moment that it stops to answer, well within
the 50 s after which Kubernetes gives up a silent node. An API server that says slow down (429)
lives, and has said nothing of us: that is a failure once nothing else has come from it for a
minute.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api import cures, durations, keys, kinds
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import (
    ApiError,
    ConfigError,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube import answer_limits, urgency
from vnode.kube.client import Client
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING, UNREACHABLE, LinkHealth
from vnode.targets import untrusted
from vnode.targets.cluster_identity import NotRecognized, Recognition

PERIOD: Final = 10.0  # seconds between probes, as the kubelet's lease renewals
RIGHTS_PERIOD: Final = 60.0  # seconds between dry runs in a target that allows them
_RETRY: Final = 2.0  # seconds to the second probe after a failure
_LIMIT: Final = 5.0  # seconds that a probe may take
_BURST: Final = 5  # probes at once, if the target itself calls for them; then one every _RETRY
PUSHED_BACK: Final = 60.0  # seconds for which nothing but 429 is no failure
_FAILURES: Final = 2  # failures in a row that make a target unhealthy

_TRANSIENT: Final = (Unreachable, ServerError, TooManyRequests)
"""Errors that may be gone in a moment; others last until somebody acts."""

_PROBE: Final[Object] = {
    "apiVersion": kinds.POD_CHAPERONS.api_version,
    "kind": kinds.POD_CHAPERONS.kind,
    "metadata": {"generateName": "vnode-probe-"},
    "spec": {"containers": [{"name": "probe", "image": "probe"}]},
}


class Prober:
    """Keeps `link.health` true."""

    def __init__(self, link: Link, clock: Clock, recognition: Recognition | None = None) -> None:
        self._link = link
        self._clock = clock
        self._recognition = recognition
        self._withheld = ""
        self._heard_at = 0.0  # monotonic, when a probe last had another answer than 429
        self._allowed_until = 0.0  # monotonic, when a dry run is due again
        self._wake = asyncio.Event()  # set to probe at once
        self._tokens = TokenBucket(1 / _RETRY, _BURST)

    def probe_now(self) -> None:
        """Probe at once: something happened to the connection.

        Some of that is up to the target, so of many calls a few lead to probes.
        """
        self._allowed_until = 0.0
        self._wake.set()

    def withhold(self, why: str) -> None:
        """Have the target be of no use, for that reason, whatever it answers; "" ends it."""
        if why != self._withheld:
            self._withheld = why
            if why:
                self._report(False, CONNECTING, why)

            self.probe_now()

    async def run(self) -> None:
        """Probe until cancelled."""
        failures = 0
        self._heard_at = self._clock.monotonic()
        while True:
            self._wake.clear()
            await self._clock.sleep(self._tokens.reserve(self._clock.monotonic()))
            error = await self._probe()
            if (wait := self._pushed_back(error)) is not None:
                await self._pause(wait)
                continue

            failures = failures + 1 if error else 0
            if error is None:
                self._report(*verdict(self._link))
            elif failures >= _FAILURES or not is_transient(error):
                reason, message = explain(error, self._link.target.namespace)
                self._report(False, reason, message)

            again = 0 < failures < _FAILURES or error is self._link.chaperons.failure
            regular = durations.coalesced(self._clock.monotonic(), PERIOD)
            await self._pause(_RETRY if error and again else regular)

    def _pushed_back(self, error: VnodeError | None) -> float | None:
        """Return the seconds until the next probe if this one says no more than to slow down."""
        now = self._clock.monotonic()
        if not isinstance(error, TooManyRequests):
            self._heard_at = now
        elif now - self._heard_at < PUSHED_BACK:
            self._link.probed_at = now  # what is known of the target still holds
            return min(max(_RETRY, error.retry_after), PERIOD)

        return None

    async def _probe(self) -> VnodeError | None:
        error = await self._ask()
        if error is not None:
            self._allowed_until = 0.0
            return error

        if self._link.chaperons.failure is not None:
            self._link.chaperons.retry_now()  # it may be backing off

        return self._link.chaperons.failure

    async def _ask(self) -> VnodeError | None:
        namespace, now = self._link.target.namespace, self._clock.monotonic()
        is_due = now >= self._allowed_until
        if is_due:
            self._allowed_until = now + RIGHTS_PERIOD

        try:
            with urgency.vital():
                async with asyncio.timeout(_LIMIT):
                    await probe(self._link.client, namespace if is_due else "", self._recognition)
        except TimeoutError:
            return Unreachable(f"no answer within {_LIMIT:.0f} s")
        except VnodeError as error:
            return error

        return None

    def _report(self, healthy: bool, reason: str, message: str) -> None:
        if self._withheld:
            healthy, reason, message = False, CONNECTING, self._withheld

        before, self._link.probed_at = self._link.health, self._clock.monotonic()
        since = before.since if before.healthy == healthy else self._clock.now()
        self._link.set_health(LinkHealth(healthy, reason, message, since))
        if healthy and not before.healthy:
            self._link.chaperons.retry_now()
            self._link.summaries.retry_now()

    async def _pause(self, seconds: float) -> None:
        await happens_within(self._wake, seconds)


def is_transient(error: VnodeError) -> bool:
    """Tell whether the error may be gone at the next probe: then it is no outage yet.

    An API server that has just started refuses everybody whose roles it has not read yet, and says
    so after the word RBAC.
    """
    if isinstance(error, Denied):
        return error.status == 403 and " RBAC: " in error.message

    if isinstance(error, NotRecognized):
        return False

    return isinstance(error, _TRANSIENT)


def verdict(link: Link) -> tuple[bool, str, str]:
    """Return (healthy, reason, message) of a target that answers; without a summary it is of no
    use."""
    if not (link.synced and link.summaries.synced.is_set()) or link.awaits_quotas:
        return False, CONNECTING, "reading what the target has"

    if link.summary is None:
        text = "the target has no ClusterSummary, which has its capacity: check that its agent runs"
        return False, "NoSummary", text

    return True, "Connected", "the target answers"


async def probe(client: Client, namespace: str, recognition: Recognition | None = None) -> None:
    """Raise what keeps us from running pods in that namespace ("" for any) of a target."""
    try:
        summary = await _read_summary(client)
        if recognition is not None:
            await recognition.recognize(client, summary)

        if namespace:
            await client.request(
                "POST", kinds.POD_CHAPERONS.path(namespace), query={"dryRun": "All"}, body=_PROBE
            )
    except Denied as error:
        if error.status == 403:
            # Kinds that do not exist are forbidden, too: NotFound then names the better cure.
            path = f"/apis/{kinds.POD_CHAPERONS.api_version}"
            await client.request("GET", path, bound=answer_limits.SMALL)

        raise


async def _read_summary(client: Client) -> Object | None:
    try:
        return await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    except NotFound as error:
        if keys.SUMMARY_NAME not in error.message:  # the kind is missing, not the summary
            raise

        return None


def explain(error: VnodeError, namespace: str) -> tuple[str, str]:
    """Return (reason, message with the cure) for a probe's error; `namespace` is "" for all."""
    if isinstance(error, Denied):
        return _explain_denied(error, namespace)

    if isinstance(error, NotFound) and "namespaces" in error.message:
        return (
            "NamespaceNotFound",
            (
                f"the target has no namespace {namespace!r}: create it there, with a Source in it "
                "(vnode connect does), or create a ClusterTarget for all namespaces instead"
            ),
        )

    if isinstance(error, NotFound):
        return (
            "NotInstalled",
            (
                "the target does not know PodChaperons and ClusterSummaries: there, "
                f"{cures.INSTALL}, and start an agent"
            ),
        )

    if isinstance(error, NotRecognized):
        return error.reason, str(error)

    if isinstance(error, Unreachable) and (text := untrusted.explain(str(error))):
        return UNREACHABLE, text

    if isinstance(error, Unreachable):
        return (
            UNREACHABLE,
            (
                f"the target cannot be reached: {error}; see that its API server runs, and that "
                "the kubeconfig has an address and an authority with which this agent reaches it"
            ),
        )

    if isinstance(error, ConfigError):
        return ("Invalid", str(error))

    message = error.message if isinstance(error, ApiError) else str(error)
    return ("Failing", f"the target answers with an error: {message}")


def _explain_denied(error: Denied, namespace: str) -> tuple[str, str]:
    if error.status == 401:
        return (
            "Unauthorized",
            (
                "the target does not accept the credentials (expired or revoked?): run vnode "
                "connect again, put a new kubeconfig into the Secret, or, for a ClusterProfile, "
                "see what its plugin gives"
            ),
        )

    kind, where = ("Source", f" in namespace {namespace!r}") if namespace else ("ClusterSource", "")
    return (
        "Forbidden",
        (
            f"the target refuses: {error.message}; create a {kind} there{where} for this user or "
            "service account (vnode connect does), and see that the target's agent runs; if there "
            f"is one, its role has been changed: there, {cures.REPAIR}"
        ),
    )
