"""Keeps the credentials that Targets get by exec plugins: a task each, and none waits for another.

The task runs the plugin before the credentials end, so that no request has to wait for it. A plugin
that hangs or fails is the failure of its own Target alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from vnode.api.clock import Clock, happens_within
from vnode.api.target_key import TargetKey
from vnode.kube.exec_credentials import ExecSpec
from vnode.kube.exec_runs import ExecRunner
from vnode.kube.plugin_credentials import PluginCredentials
from vnode.runtime.keyed_tasks import KeyedTasks

_LONGEST: Final = 3600.0  # seconds between two looks, since wall clocks may be set


class PluginRuns:
    """Runs plugins of targets in `tasks`; calls `changed` when one has another credential, or
    fails."""

    def __init__(
        self,
        tasks: KeyedTasks[TargetKey],
        changed: Callable[[TargetKey], None],
        clock: Clock,
        runner: ExecRunner | None = None,
    ) -> None:
        self._tasks = tasks
        self._changed = changed
        self._clock = clock
        self._runner = runner
        self._running: dict[TargetKey, PluginCredentials] = {}  # each has a task

    def use(self, key: TargetKey, spec: ExecSpec) -> PluginCredentials:
        """Return the credentials of a target by that plugin, which is run from now on."""
        known = self._running.get(key)
        if known is not None and known.spec == spec:
            return known

        self.forget(key)
        made = self._running[key] = PluginCredentials(
            spec,
            self._runner,
            clock=self._clock,
            changed=lambda: self._changed(key),
            certificates=True,
            kept=True,
        )
        self._tasks.start(key, partial(self._keep, made), f"exec-plugin-{key}")
        return made

    def forget(self, key: TargetKey) -> None:
        """Stop to run the plugin of a target."""
        if self._running.pop(key, None) is not None:
            self._tasks.stop(key)

    async def _keep(self, credentials: PluginCredentials) -> None:
        while True:
            credentials.wanted.clear()
            await credentials.refresh()
            await happens_within(credentials.wanted, min(credentials.wait, _LONGEST))
