"""What a target reports of its delegates' Events, and what the source's users see of it."""

from __future__ import annotations

from contextlib import asynccontextmanager

from tests import background
from vnode.api import kinds, objects
from vnode.pods.event_record import FIELD
from vnode.pods.source.delegate_events import DelegateEventReporter

STARTED = ["Scheduled", "Pulled", "Created", "Started"]
WORDS = dict(zip(STARTED, ("to n1", "an image", "it", "it"), strict=True))


def reporter(env, clock, mode="Summary"):
    """Make the reporter of a source, which hears of its proxies."""
    made = DelegateEventReporter(
        env.source.client("agent"), env.links, env.proxies.store.get, mode=mode, clock=clock
    )
    env.proxies.subscribe(made.on_pod)
    return made


@asynccontextmanager
async def running(env, clock, mode="Summary", *, seconds=1):
    """Have both controllers at work; inside, they have had that many seconds."""
    events = reporter(env, clock, mode)
    async with background.running(events.run()), env.running(seconds=seconds):
        yield


def entry(env, reason, message="", **fields):
    """Build an entry of the list of a delegate's Events."""
    now = env.source.writer.now()
    return {
        "type": "Normal",
        "reason": reason,
        "message": message,
        "count": 1,
        "first": now,
        "last": now,
        "component": "kubelet",
        "host": "n1",
        **fields,
    }


def warning(env, reason="BackOff", message="Back-off pulling image", **fields):
    """Build an entry of a warning."""
    return entry(env, reason, message, type="Warning", **fields)


def start(env):
    """List what is told of a pod that starts well."""
    return [entry(env, reason, message) for reason, message in WORDS.items()]


def report(env, entries, *, phase="Running", name="web"):
    """Have the target report these entries with a status."""
    env.target.report(name, **{FIELD: entries, "phase": phase})


def events_of(env):
    """List the Events that a user sees, as (reason, message, count), the oldest first."""
    events = sorted(env.source.all(kinds.EVENTS), key=objects.resource_version)
    return [(each["reason"], each["message"], each["count"]) for each in events]


def asked(env):
    """List the verbs of the reporter's requests to the source."""
    return [each.verb for each in env.source.requests if each.client == "agent"]


async def place(env):
    """Bind a pod, and have the target run it."""
    env.target.add(env.add())
