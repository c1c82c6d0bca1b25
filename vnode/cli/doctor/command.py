"""Defines the flags of `vnode doctor`, and runs its checks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.cli import access, cluster_options, main, manifests, tables, terminal
from vnode.cli.access import Access
from vnode.cli.doctor import all_checks, examining, trying
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level, lines
from vnode.targets.profiles.config import InventoryConfig


async def diagnose(
    source: Access,
    targets: tuple[Path, ...],
    namespace: str,
    inventory: InventoryConfig | None = None,
) -> list[Finding]:
    """Return all findings about the source, its connections, and the targets with a kubeconfig.

    With the agent's `inventory`, the plugins of ClusterProfiles are run here.
    """
    clock = SystemClock()

    async def check(cluster_access: Access, name: str) -> tuple[ClusterFacts, list[Finding]]:
        async with cluster_access.client(name) as client:
            facts = await examining.examine(client, name, namespace, clock)
            connections = await trying.read_all(client, facts.targets, clock, inventory)

        return facts, all_checks.check(facts, connections)

    clusters = [(source, "this cluster")]
    clusters += [(Access(file), f"target cluster {file.name}") for file in targets]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check(*cluster), name=cluster[1]) for cluster in clusters]

    findings: list[Finding] = []
    known: dict[str, str] = {}
    for facts, found in (task.result() for task in tasks):
        if facts.uid and facts.uid in known:
            raise ConfigError(f"{facts.name} is {known[facts.uid]}: name each cluster once")

        known[facts.uid] = facts.name
        findings += found

    return findings or [Finding("this cluster", "targets", Level.SKIP, "there is nothing to check")]


def summary(findings: list[Finding]) -> str:
    """Count the findings of each level, in one line."""
    counts = {level: sum(1 for f in findings if f.level is level) for level in Level}
    return (
        f"{counts[Level.OK]} ok, {counts[Level.WARN]} warnings, {counts[Level.FAIL]} failures, "
        f"{counts[Level.SKIP]} could not be checked"
    )


def as_object(findings: list[Finding]) -> objects.Object:
    """Convert the findings to the object of `-o json`."""
    return {
        "apiVersion": "vnode.dev/v1alpha1",
        "kind": "Diagnosis",
        "findings": [
            {
                "place": finding.place,
                "check": finding.check,
                "level": finding.level.name.lower(),
                "text": finding.text,
                "cure": finding.cure,
            }
            for finding in findings
        ],
    }


def command() -> click.Command:
    """Return the click command."""

    @click.command("doctor")
    @cluster_options.source_options
    @click.option(
        "--target",
        "targets",
        type=access.FILE,
        multiple=True,
        help="Kubeconfig of an administrator of a target: to check its inside, too. Repeatable.",
    )
    @click.option(
        "--agent-namespace",
        default=manifests.NAMESPACE,
        show_default=True,
        help="The agents' own namespace.",
    )
    @click.option(
        "--config",
        type=access.FILE,
        help="The agent's configuration: to try providers and plugins of ClusterProfiles here.",
    )
    @tables.output_option("text", "json")
    def doctor_command(
        kubeconfig: Path | None,
        context: str | None,
        targets: tuple[Path, ...],
        agent_namespace: str,
        config: Path | None,
        output: str,
    ) -> None:
        """Check a cluster and both sides of its connections; name the cure of each failure.

        Exit code 3 if something does not work, 0 if all does (warnings or not).
        """

        from vnode.agent import config as agent_config

        async def check() -> None:
            where = Access(kubeconfig, context)
            inventory = agent_config.load(config).inventory if config else None
            findings = await diagnose(where, targets, agent_namespace, inventory)
            if output == "json":
                from vnode.cli import tables

                terminal.say(tables.document([as_object(findings)], "json", single=True))
            else:
                for line in lines(findings):
                    terminal.say(line)

                terminal.say(summary(findings))

            if any(finding.level is Level.FAIL for finding in findings):
                raise click.exceptions.Exit(main.PROBLEMS_FOUND)

        main.run(check())

    return doctor_command
