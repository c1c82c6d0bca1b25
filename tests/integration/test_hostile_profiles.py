"""A ClusterProfile by an attacker: no code of it runs, and no credential goes where it must not.

The plugin notes its runs, the attacker's code would leave marks, and a Target beside stays Ready.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import inventory, kit
from tests.integration.inventoried import Inventoried, inventoried
from tests.integration.recording_plugin import RecordingPlugin, Traps
from vnode.api import kinds, objects
from vnode.api.errors import Invalid
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.profiles.resolving import ARGS, VARIABLES

__all__ = ["inventoried"]


class Attacked:
    """An inventory whose providers all run one plugin, and profiles that attack it.

    `closed` is a provider as it is by default, `open` takes arguments and variables of profiles,
    and `guarded` may reach the target alone.
    """

    def __init__(self, inventoried: Inventoried, folder: Path) -> None:
        self.inventoried = inventoried
        self.server = str(inventoried.access["cluster"]["server"])
        self.plugin = RecordingPlugin(folder, inventoried.config.providers[-1].exec_config)
        self.traps = Traps(folder)
        host = urlsplit(self.server).hostname or ""
        policies = {
            "args_policy": "Append",
            "env_policy": "Replace",
            "variables": ("TENANT", "INJECTED"),
        }
        providers = (
            self.plugin.provider("closed"),
            self.plugin.provider("open", **policies),
            self.plugin.provider("guarded", servers=(host,)),
        )
        inventoried.config = InventoryConfig((inventoried.namespace,), providers)

    def status(
        self,
        provider: str,
        profile: str,
        *,
        more: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        **extensions: Any,
    ) -> Object:
        """Return the status of a profile, with more fields of its cluster and more extensions."""
        own = {"clusterName": "c2", "profile": profile, **(config or {})}
        listed = {inventory.EXTENSION: own, **extensions}
        cluster = {
            **self.inventoried.access["cluster"],
            **(more or {}),
            "extensions": [{"name": n, "extension": value} for n, value in listed.items()],
        }
        return {"accessProviders": [{"name": provider, "cluster": cluster}]}

    async def add(self, name: str, provider: str, **fields: Any) -> None:
        """Create a profile and the Target that names it."""
        await self.inventoried.add(name, self.status(provider, name, **fields))

    async def until_told(self, expected: Mapping[str, tuple[str, str]]) -> None:
        """Wait until Targets have these reasons, with messages of which this is a part."""

        def has_reason(target: Object, reason: str, text: str) -> bool:
            found = objects.condition(target, "Ready") or {}
            return found.get("reason") == reason and text in found["message"]

        await kit.until(
            *(self.inventoried.source, kinds.CLUSTER_TARGETS),
            lambda all_: all(
                name in all_ and has_reason(all_[name], *wanted)
                for name, wanted in expected.items()
            ),
        )

    @asynccontextmanager
    async def with_good_target(self) -> AsyncIterator[None]:
        """Run an agent; inside, the Target `good` is connected, by one and the same connection.

        Nothing of the attacker runs meanwhile.
        """
        await inventory.installed(self.inventoried.source)
        await self.add("good", "closed")
        async with self.inventoried.agent():
            await self.inventoried.until_reason("good", "Connected")
            link = self.inventoried.link("good")
            yield
            assert self.inventoried.link("good") is link
            assert link.health.healthy
            good = await self.inventoried.source.get(kinds.CLUSTER_TARGETS, "good")
            assert kit.is_ready(good)

        assert self.traps.marks() == set()


@pytest.fixture
def attacked(inventoried: Inventoried, tmp_path: Path) -> Attacked:
    return Attacked(inventoried, tmp_path)


async def test_credentials_go_only_to_hosts_that_their_provider_lists(attacked: Attacked) -> None:
    source = str(attacked.inventoried.own_access["cluster"]["server"])
    own, host = urlsplit(source).hostname, urlsplit(attacked.server).hostname
    unlisted = "and the agent's configuration (servers of that provider) does not list that host"
    where = f"provider 'guarded' of ClusterProfile {attacked.inventoried.namespace}"
    attacks: dict[str, tuple[Object, str]] = {
        "source": ({"server": source}, f"{where}/source leads to {own}, {unlisted}"),
        "stranger": (
            {"server": "https://evil.example:6443", "servers": ["evil.example"]},
            f"{where}/stranger leads to evil.example, {unlisted}",
        ),
        "suffix": ({"server": f"https://{host}.evil.example"}, "leads to "),
        "user": (
            {"server": f"https://{host}@evil.example"},
            f"{where}/user: its server is not of the form https://HOST:PORT/PATH",
        ),
        "fragment": ({"server": f"https://evil.example#@{host}"}, "is not of the form"),
    }
    async with attacked.with_good_target():
        await attacked.add("permitted", "guarded")
        await attacked.add("turns", "guarded")
        for name in ("permitted", "turns"):
            await attacked.inventoried.until_reason(name, "Connected")

        for name, (more, _text) in attacks.items():
            await attacked.add(name, "guarded", more=more)

        turned = attacked.status("guarded", "turned", more={"server": source})
        await attacked.inventoried.set_status("turns", turned)
        expected = {name: ("ProfileRefused", text) for name, (_more, text) in attacks.items()}
        expected["turns"] = ("ProfileRefused", f"{where}/turns leads to {own}, {unlisted}")
        await attacked.until_told(expected)
        for name in expected:
            assert attacked.inventoried.links.get(TargetKey("", name).node_name) is None, name

    assert attacked.plugin.runs().keys() == {"good", "permitted", "turns"}


async def test_commands_of_a_profile_are_shown_to_the_plugin_and_never_run(
    attacked: Attacked,
) -> None:
    program = str(attacked.traps.program)
    hostile = {
        "command": program,
        "args": ["-c", program],
        "env": [{"name": "BASH_ENV", "value": program}],
        "execConfig": {"command": program},
    }
    async with attacked.with_good_target():
        injected = {"BASH_ENV": program, "INJECTED": "yes"}
        fields: Object = {"config": hostile, "more": {"exec": hostile}, VARIABLES: injected}
        await attacked.add("ignored", "closed", **fields, **{ARGS: {"command": program}})
        await attacked.add("words", "open", **{ARGS: {"command": program}})
        await attacked.add("taken", "open", **{VARIABLES: {"INJECTED": "yes"}})
        no_list = f"extension {ARGS} must be a list of strings"
        await attacked.until_told({"words": ("ProfileRefused", no_list)})
        for name in ("ignored", "taken"):
            await attacked.inventoried.until_reason(name, "Connected")

        # As the inventory project defines the kind, no profile can have the list that its own
        # library reads.
        with pytest.raises(Invalid, match="must be of type object"):
            await attacked.add("list", "open", **{ARGS: [program]})

    runs = attacked.plugin.runs()
    assert runs.keys() == {"good", "ignored", "taken"}
    assert runs["ignored"].cluster["config"].items() >= hostile.items()
    assert runs["ignored"].words == []
    assert not injected.keys() & runs["ignored"].environment.keys()
    assert runs["taken"].environment["INJECTED"] == "yes", "its provider takes variables"


async def test_variables_that_decide_what_code_runs_are_refused(attacked: Attacked) -> None:
    async with attacked.with_good_target():
        expected = {}
        for name, variables in attacked.traps.variables.items():
            target = name.lower().replace("_", "-")
            await attacked.add(target, "open", **{VARIABLES: variables})
            text = (
                f"extension {VARIABLES} sets {name}, which is not listed in the agent's "
                "configuration (profileSourcedEnvVars of that provider)"
            )
            expected[target] = ("ProfileRefused", text)

        await attacked.add("number", "open", **{VARIABLES: {"TENANT": 1}})
        expected["number"] = ("ProfileRefused", f"{VARIABLES} must map names to strings")
        await attacked.until_told(expected)

    assert attacked.plugin.runs().keys() == {"good"}
