from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api.errors import ConfigError
from vnode.scheduling import config, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry

EXAMPLE = Path(__file__).parents[3] / "examples" / "scheduler_plugin"


@pytest.fixture
def example_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example package as an installer does: its code and metadata are on the path."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join(lines))
    for group, entries in project["entry-points"].items():
        listed = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *listed]))

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield
    for module in [name for name in sys.modules if name.startswith("cheapest_target")]:
        del sys.modules[module]


def build(section: object = None) -> Framework:
    known = Registry(defaults.PLUGINS, registry.installed())
    profile = config.load(section).profile
    return registry.build(
        profile,
        known,
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, clock=ManualClock()),
    )


def profile(**parts: object) -> dict[str, object]:
    return {"profile": parts}


def test_the_default_profile_builds_and_registers_the_events_of_all_plugins() -> None:
    framework = build()
    assert framework.queue_sort.NAME == "PrioritySort"
    assert framework.registrations().keys() == defaults.WEIGHTS.keys()


@pytest.mark.usefixtures("example_installed")
def test_a_third_party_plugin_is_found_by_its_entry_point_and_decides() -> None:
    framework = build(
        profile(
            plugins={"enabled": [{"name": "CheapestTarget", "weight": 50}]},
            pluginConfig=[{"name": "CheapestTarget", "args": {"maxPrice": 40}}],
        )
    )
    cache = Cache()
    for name, price in {"a": "30", "b": "15", "c": "50"}.items():
        cache.update_node(virtual_node(name, labels={"example.com/price": price}))

    cache.update_node(virtual_node("d"))
    result = framework.schedule(pod("p"), cache.snapshot())
    assert [scored.name for scored in result.feasible] == ["b", "a"]
    assert result.feasible[1].scores["CheapestTarget"] == 50 * 50
    assert result.statuses["c"].message == "costs 50, more than 40"
    assert result.statuses["d"].plugin == "CheapestTarget"


@pytest.mark.usefixtures("example_installed")
def test_a_third_party_plugin_that_is_not_enabled_is_not_even_imported() -> None:
    build()
    assert "cheapest_target" not in sys.modules


def test_a_disabled_plugin_takes_no_part_and_a_star_disables_all() -> None:
    assert (
        "EvenSpread"
        not in build(profile(plugins={"disabled": [{"name": "EvenSpread"}]})).registrations()
    )
    only_sort = profile(
        plugins={"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]}
    )
    assert build(only_sort).registrations().keys() == {"PrioritySort"}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            profile(plugins={"enabled": [{"name": "Nope"}]}),
            'unknown scheduler plugin "Nope"; known',
        ),
        (profile(plugins={"disabled": [{"name": "Nope"}]}), "CandidateProbe, Chain, ClusterScores"),
        (profile(plugins={"enabled": [{"name": "EvenSpread", "weight": -1}]}), "0 or more"),
        (profile(pluginConfig=[{"name": "Nope"}]), '"Nope" is not enabled; enabled are: Prio'),
        (
            profile(pluginConfig=[{"name": "CandidateProbe", "args": {"count": 2}}]),
            'arguments of CandidateProbe: unknown field "count"; known are: candidates, plugins',
        ),
        (
            profile(
                pluginConfig=[
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}}
                ]
            ),
            "Invalid enum value 'Best'",
        ),
        (profile(plugins={"disabled": [{"name": "PrioritySort"}]}), "exactly one QueueSort"),
    ],
)
def test_a_wrong_profile_is_an_error_that_names_what_is_known(
    section: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(section)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("absent_package:Thing", "cannot be imported from absent_package:Thing"),
        ("pathlib:Path", "must be a subclass of"),
        ("scheduler_plugins.even_spread:EvenSpread", 'NAME = "EvenSpread"'),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_an_error(value: str, message: str) -> None:
    entry = metadata.EntryPoint("Mine", value, registry.ENTRY_POINT_GROUP)
    with pytest.raises(ConfigError) as caught:
        Registry((), [entry]).get("Mine")

    assert message in str(caught.value)
