"""Creates delegates, each in its turn, and reports on their chaperons why that failed.

A refusal is reported as a scheduler reports that a pod has no place: the source then asks another
target. The report itself wakes the controller, so the time of the next attempt is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects, permissions, pod_shape, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ServerError,
    TooManyRequests,
)
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import delegate
from vnode.pods.target import missing_claims
from vnode.pods.target.dropped_fields import DroppedFields
from vnode.pods.target.own_delegates import fetch, is_of
from vnode.pods.target.unseen_delegates import UnseenDelegates
from vnode.runtime.expectations import Expectations

_REFUSED: Final = 30.0  # seconds until a pod that the API server refused is tried again
_FAILED: Final = 0.05  # seconds until one that it failed to make is, doubled with each failure

_NO_PRIORITY_CLASS: Final = r"no PriorityClass with name \S+ was found"

_CURES: Final = (
    (
        r'serviceaccount "[^"]+" not found',
        (
            "create it there, in namespace {namespace}, or have the Target do so by its annotation "
            f"{keys.CREATE_SERVICE_ACCOUNTS}"
        ),
    ),
    (r'RuntimeClass "[^"]+" not found', "create it in the target"),
    (_NO_PRIORITY_CLASS, "create it in the target"),
)
"""What the API server refuses a pod for, and what the user can do, who reads it in the source."""


class DelegateCreator:
    """Creates the delegate of a chaperon, with a back-off for each chaperon.

    `goes_on` tells whether a delegate may be sent to a target of this cluster; `expectations` are
    those of writes to chaperons, by key. `wake` is called with the key of a chaperon whose turn has
    come.
    """

    def __init__(
        self,
        client: Client,
        expectations: Expectations,
        wake: Callable[[str], None],
        *,
        goes_on: Callable[[Object], bool],
        clock: Clock,
    ) -> None:
        self._client = client
        self._expectations = expectations
        self._goes_on = goes_on
        self._clock = clock
        self._unseen = UnseenDelegates(wake, clock)
        self._dropped_fields = DroppedFields(client)
        # By key of the chaperon; go with it. `_retry_at` (monotonic) goes too when a pod of that
        # key changes, which may be the end of the one in the way.
        self._failures: dict[str, int] = {}  # in a row; no zeros
        self._retry_at: dict[str, float] = {}
        # The UID of the delegate that was made last, by key of the chaperon; "" while an answer is
        # missing. Goes with the chaperon.
        self._made: dict[str, str] = {}

    def on_chaperon(self, chaperon: Object) -> None:
        """Note a chaperon as it is now."""
        self._unseen.note_chaperon(chaperon)

    def on_delegate(self, key: str, pod: Object | None) -> None:
        """Allow the next attempt at once: a pod of that key has changed, or is gone."""
        self._retry_at.pop(key, None)
        self._unseen.note_delegate(key, pod)

    def forget(self, key: str) -> None:
        """Forget a chaperon that is gone."""
        self._failures.pop(key, None)
        self._retry_at.pop(key, None)
        self._unseen.forget(key)
        self._made.pop(key, None)

    def is_last(self, chaperon: Object, pod: Object) -> bool:
        """Tell whether a delegate is the chaperon's, and none was made after it, that is known."""
        made = self._made.get(objects.key(chaperon), objects.uid(pod))
        return is_of(chaperon, pod) and objects.uid(pod) == made

    async def create(self, chaperon: Object) -> float | None:
        """Create the delegate; return in how many seconds to try again, None if that is not needed.

        One whose turn it is not waits for it. Raises errors that may pass, which the controller
        answers by a back-off.
        """
        key = objects.key(chaperon)
        left = self._retry_at.get(key, 0.0) - self._clock.monotonic()
        if left > TICK:
            return left

        if not self._unseen.admits(chaperon):
            return None

        later: float | None = _FAILED
        try:
            later = await self._make(chaperon)
        finally:
            if later is not None:  # its scheduler has nothing to look at
                self._unseen.settle(key)

        return later

    async def _make(self, chaperon: Object) -> float | None:
        name, namespace = objects.name(chaperon), objects.namespace(chaperon)
        if "containers" not in objects.spec(chaperon):  # trimmed
            chaperon = await self._client.get(kinds.POD_CHAPERONS, name, namespace)

        if problem := pod_shape.problem(chaperon):
            # Nothing to try again: whoever mends it changes the chaperon.
            self._unseen.settle(objects.key(chaperon))
            await self.explain(chaperon, f"the PodChaperon is not of a pod: {problem}")
            return None

        if problem := await missing_claims.missing(self._client, chaperon):
            return await self._report(chaperon, problem, self._next_wait(chaperon))

        await self._keep_permission(chaperon)
        pod = delegate.build(chaperon, goes_on=self._goes_on(chaperon))
        try:
            if problem := await self._dropped_fields.find(pod, namespace):
                return await self._report(chaperon, problem, _REFUSED)

            self._made[objects.key(chaperon)] = ""
            made = await self._client.create(kinds.PODS, pod, namespace)
            self._made[objects.key(chaperon)] = objects.uid(made)
        except AlreadyExists:
            return await self.reject_name(chaperon)
        except ApiError as error:
            if _may_pass(error):
                await self._fail(chaperon, error)
                raise

            return await self._report(chaperon, explain(error.message, chaperon), _REFUSED)

        self._failures.pop(objects.key(chaperon), None)
        return None

    async def _keep_permission(self, chaperon: Object) -> None:
        """Write that a delegate which is made anew may run, if a message was all that said so.

        What said it besides is the status of the one that was bound before, which will be gone.
        """
        is_again = objects.key(chaperon) in self._made or permissions.was_bound(chaperon)
        by_message = keys.SOURCE_DIGEST in objects.annotations(chaperon)
        if is_again and by_message and permissions.is_allowed(chaperon):
            name, namespace = objects.name(chaperon), objects.namespace(chaperon)
            body = permissions.patch(chaperon)
            await self._client.patch(kinds.POD_CHAPERONS, name, body, namespace)

    async def reject_name(self, chaperon: Object) -> float | None:
        """Report that another pod has the name, unless that is the delegate after all."""
        if await fetch(self._client, chaperon) is not None:
            return None

        message = f"another pod is named {objects.name(chaperon)}"
        return await self._report(chaperon, message, _REFUSED)

    async def _fail(self, chaperon: Object, error: ApiError) -> None:
        """Report an error that may pass, such as that of a webhook, once it comes twice."""
        wait = self._next_wait(chaperon)
        if self._failures[objects.key(chaperon)] > 1:
            await self._report(chaperon, explain(error.message, chaperon), wait)

    def _next_wait(self, chaperon: Object) -> float:
        """Count one more failure; return in how many seconds to try again, more each time."""
        key = objects.key(chaperon)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        return min(_FAILED * 2.0 ** min(count, 16), _REFUSED)

    async def _report(self, chaperon: Object, message: str, seconds: float) -> float:
        """Tell why there is no pod, and note when to try again."""
        self._retry_at[objects.key(chaperon)] = self._clock.monotonic() + seconds
        await self.explain(chaperon, message)
        return seconds

    async def explain(self, chaperon: Object, message: str) -> None:
        """Report on the chaperon why there is no pod, by the condition of a pending pod."""
        known = objects.condition(chaperon, "PodScheduled") or {}
        if known.get("message") != message:
            condition = scheduled_condition.rejected(message, objects.timestamp(self._clock.now()))
            body = objects.status_patch(chaperon, {"conditions": [condition]})
            await self._expectations.patch(
                self._client, kinds.POD_CHAPERONS, chaperon, body, subresource="status"
            )


def _may_pass(error: ApiError) -> bool:
    """Tell whether an error may have gone in a moment.

    The API server's own watch of PriorityClasses may not have seen one that we have seen.
    """
    return isinstance(error, (Conflict, ServerError, TooManyRequests)) or bool(
        re.search(_NO_PRIORITY_CLASS, error.message)
    )


def explain(message: str, chaperon: Object) -> str:
    """Return the API server's refusal of a delegate, with its cure if we know one.

    Whoever reads it in the source knows the pod by the name that it has there.
    """
    namespace = objects.namespace(chaperon)
    _namespace, parent = objects.split_key(parent_key(chaperon))
    message = message.replace(f'"{objects.name(chaperon)}"', f'"{parent}"')
    cures = [cure for pattern, cure in _CURES if re.search(pattern, message)]
    return f"{message}: {cures[0].format(namespace=namespace)}" if cures else message
