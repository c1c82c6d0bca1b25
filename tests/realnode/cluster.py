"""What the tests do with a cluster: kubectl, with bytes in and out, and pods of one shell line."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests import kit
from tests.integration import kubelets
from tests.kit import Fleet
from vnode.api import keys, objects
from vnode.api.objects import Object

SOURCE, TARGET = "c1", "c2"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: bytes
    err: bytes


@dataclass(frozen=True)
class NodeCluster:
    fleet: Fleet
    name: str

    def kubectl(self, *words: str, stdin: bytes | None = None, spdy: bool = False) -> Done:
        """Run kubectl to its end, whatever that is."""
        done = subprocess.run(
            self.command(*words),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=kubelets.environment(spdy=spdy),
            timeout=kit.PATIENCE,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ask(self, *words: str, stdin: bytes | None = None) -> str:
        """Return what kubectl prints; an AssertionError if it fails."""
        done = self.kubectl(*words, stdin=stdin)
        assert done.code == 0, f"{' '.join(words)}: {done.err.decode()}{done.out.decode()}"
        return done.out.decode()

    def command(self, *words: str) -> list[str]:
        return [*self.fleet.kubectl_command(self.name), *words]

    @asynccontextmanager
    async def session(
        self, *words: str, spdy: bool = False
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield a kubectl that runs beside the test, and is killed in the end."""
        process = await asyncio.create_subprocess_exec(
            *self.command(*words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=kubelets.environment(spdy=spdy),
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    def apply(self, made: Object) -> None:
        self.ask("apply", "-f", "-", stdin=json.dumps(made).encode())

    def start(self, name: str, script: str, **options: Any) -> None:
        """Create a pod that runs `script`, and wait until it is ready; `options` as of `pod`."""
        self.apply(pod(name, script, **options))
        self.ask("wait", "--for=condition=Ready", f"pod/{name}", kit.TIMEOUT)

    def finish(self, name: str, script: str, **options: Any) -> str:
        """Return the log of a pod that runs `script` to its end; `options` as of `pod`."""
        self.apply(pod(name, script, **{"restartPolicy": "Never", **options}))
        self.until(name, ".status.phase", "Succeeded")
        return self.ask("logs", name)

    def remove(self, name: str) -> None:
        """Delete a pod; the next test has pods of other names, and need not wait."""
        self.ask("delete", "pod", name, "--wait=false")

    def delegate_of(self, proxy: Object) -> str:
        """Return the name here of the pod that runs in place of `proxy`."""
        selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
        (found,) = self.get("pods", "-l", selector)["items"]
        return objects.name(found)

    def get(self, kind: str, *words: str) -> Any:
        return json.loads(self.ask("get", kind, *words, "-o", "json"))

    def restarts(self, pod: str) -> int:
        return int(self.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"])

    def until(self, pod: str, jsonpath: str, value: str = "") -> None:
        """Wait until a field of a pod is there, or is `value`."""
        wanted = f"{{{jsonpath}}}" + (f"={value}" if value else "")
        self.ask("wait", f"--for=jsonpath={wanted}", f"pod/{pod}", kit.TIMEOUT)


def pod(name: str, script: str, *, container: dict[str, Any] | None = None, **spec: Any) -> Object:
    """Return an elected pod that runs a line of shell and ends quickly when it is told to."""
    made = kit.pod(name, terminationGracePeriodSeconds=1, **spec)
    made["spec"]["containers"][0] |= {"command": ["sh", "-c", script], **(container or {})}
    return made
