"""What the documentation says exists: links, commands with their flags, configurations, objects."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from hack.fleetlib import cli as fleet
from scheduler_plugins import defaults
from tests import pages
from tests.docs.left_out import LEFT_OUT, LeftOut
from tests.docs.starting_states import STARTING_STATES
from tests.kit import ROOT
from tests.pages import PAGES, Block
from tests.permitted import MANIFESTS, any_namespace
from vnode.agent import config
from vnode.api import cluster_scores, device_claims, keys, kinds, taints, virtual_constraints
from vnode.api.clock import SystemClock
from vnode.cli import main
from vnode.issuing import request as issuing
from vnode.overrides import policy
from vnode.placement.moves import rebalance_status
from vnode.placement.policies import decoding
from vnode.scheduling import registry
from vnode.scheduling.plugin import Handle, Plugin
from vnode.targets import model, source_rbac
from vnode.targetsets import spec as target_sets
from vnode.webhook import mutate

_OTHERS = (
    keys.KUEUE,
    "core.kubeadmiral.io",
    "policy.karmada.io",
    "authentication.open-cluster-management.io",
    "cluster.open-cluster-management.io",
)
AGENT_CONFIGURATION = "AgentConfiguration"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SHELL_ENDS = ("&", "|", ">", ">>", "&&", ";")


def documents() -> Iterator[tuple[Block, dict[str, Any]]]:
    """Yield the Kubernetes objects and configurations in YAML blocks."""
    for block in pages.all_blocks():
        if block.language == "yaml":
            for document in yaml.safe_load_all(block.text):
                if isinstance(document, dict) and "kind" in document:
                    yield block, document


def commands(program: str) -> list[str]:
    """Return every call of a program in the pages, without what a shell does with it."""
    found = [one.joined for block in pages.all_blocks() for one in block.commands()]
    for page in PAGES:
        found += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", pages.prose(page))]

    return sorted({line for line in found if line.startswith(f"{program} ")})


def words_of(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    end = next((i for i, word in enumerate(words) if word in _SHELL_ENDS), len(words))
    return [word for word in words[1:end] if word != "..."]


@cache
def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return its options by every spelling."""
    found = {"--help": click.Option(["--help"], is_flag=True)}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for spelling in (*parameter.opts, *parameter.secondary_opts):
                found[spelling] = parameter

    return found


def check_flags(words: list[str], command: click.Command) -> list[str]:
    """Return the words after the flags of this command.

    Raise AssertionError for a flag that the command does not have or that lacks its value.
    """
    options = options_of(command)
    while words and words[0].startswith("-"):
        flag, equals, _value = words.pop(0).partition("=")
        assert flag in options, f"{command.name} has no {flag}"
        if not options[flag].is_flag and not equals:
            assert words, f"{flag} needs a value"
            words.pop(0)

    return words


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(pages.prose(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue

        file, _hash, anchor = target.partition("#")
        other = page.parent / file if file else page
        assert other.exists(), target
        assert not anchor or other.suffix != ".md" or anchor in pages.anchors(other), target


def test_pictures_are_there_and_each_is_shown() -> None:
    shown = {
        page.parent / source
        for page in PAGES
        for source in re.findall(r'src(?:set)?="([^":]+)"', page.read_text())
    }
    assert shown == set(ROOT.glob("docs/images/*"))


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_each_page_is_in_the_index(page: Path) -> None:
    assert page.name == "README.md" or f"({page.name})" in (ROOT / "docs/README.md").read_text()


READERS = ("users.md", "operators.md", "reviewers.md", "developers.md")


def test_the_index_begins_with_a_page_for_each_reader() -> None:
    index = (ROOT / "docs/README.md").read_text()
    assert tuple(_LINK.findall(index)[: len(READERS)]) == READERS


@pytest.mark.parametrize("page", READERS)
def test_a_readers_page_is_short_and_says_whom_it_is_for(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert len(text.splitlines()) < 120
    assert "This page stands alone" in text
    assert text.partition("\n\n")[2].startswith("For those who ")


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def test_each_decision_is_in_the_index_in_order() -> None:
    index = (ROOT / "docs/README.md").read_text()
    listed = re.findall(r"^- \[(\d+) .*\]\(decisions/(.*)\)$", index, re.MULTILINE)
    assert [name for _number, name in listed] == [page.name for page in DECISIONS]
    assert all(int(number) == int(name[:4]) for number, name in listed)


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_decisions_have_one_format(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert headings[:2] == ["Context", "Decision"]
    assert headings[-2:] == ["Consequences", "Considered"]


@pytest.mark.parametrize("line", commands("vnode"))
def test_commands_exist_with_these_flags(line: str) -> None:
    rest = check_flags(words_of(line), main.cli)
    if not rest:
        return

    name, *words = rest
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None, f"there is no vnode {name}"
    positional: list[str] = []
    while words := check_flags(words, command):
        positional.append(words.pop(0))

    wanted = [entry.nargs for entry in command.params if isinstance(entry, click.Argument)]
    assert -1 in wanted or len(positional) <= len(wanted), f"too many words: {positional}"


@pytest.mark.parametrize("line", commands("hack/fleet"))
def test_fleet_commands_exist_with_these_flags(line: str) -> None:
    words = words_of(line)
    if len(words) < 2 and "--help" not in words:
        return  # named in passing

    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()) as complaint:
        fleet.parser().parse_args(words)

    assert not complaint.getvalue()


@pytest.mark.parametrize("line", commands("make"))
def test_make_targets_exist(line: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in words_of(line):
        assert "=" in word or re.search(rf"^{word}:", makefile, re.MULTILINE), word


@pytest.mark.parametrize("line", commands("$python") + commands("VNODE_TEST_FLEET=/tmp/fleet"))
def test_tests_that_are_named_exist(line: str) -> None:
    named = [word for word in words_of(line) if word.startswith("tests/")]
    assert all((ROOT / path).exists() for path in named), named


@pytest.mark.parametrize("line", LEFT_OUT, ids=lambda line: line.pattern)
def test_what_the_tests_of_commands_leave_out_is_there_and_covered(line: LeftOut) -> None:
    every = [one.joined for block in pages.all_blocks() for one in block.commands()]
    assert any(re.match(line.pattern, text) for text in every), "matches nothing"
    assert (ROOT / line.covered).exists()


def test_make_test_runs_what_pages_have_it_run() -> None:
    makefile = (ROOT / "Makefile").read_text()
    suites = " ".join(re.findall(r"^SUITES :?= (.*)$", makefile, re.MULTILINE)).split()
    assert {"demo", "integration", "e2e", "faults", "docs-test"} <= set(suites)


def test_pages_that_need_programs_of_others_are_left_to_their_suite() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (left,) = re.findall(r"^OF_OCM = (\S+)$", makefile, re.MULTILINE)
    assert {page for page, state in STARTING_STATES.items() if state.programs} == {
        f"docs/{left}.md"
    }


@pytest.mark.parametrize(
    "block",
    [block for block, document in documents() if document["kind"] == AGENT_CONFIGURATION],
    ids=str,
)
def test_configurations_load_and_make_a_framework(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "scheduler_plugin"))
    from cheapest_target.plugin import CheapestTarget  # type: ignore[import-not-found]

    file = tmp_path / "agent.yaml"
    file.write_text(block.text)
    loaded = config.load(file)
    plugins = registry.Registry((*defaults.PLUGINS, CheapestTarget))
    registry.build(
        loaded.scheduling.profile,
        plugins,
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, clock=SystemClock()),
    )


def test_the_whole_candidates_section_is_documented_with_its_defaults() -> None:
    page = (ROOT / "docs/scheduling.md").read_text()
    for name in ("parallel", "stagger", "patience"):
        default = getattr(config.AgentConfig().candidates, name)
        assert f"| `{name}` | {default:g} |" in page

    assert f"| `keepRejected` | {config.AgentConfig().candidates.keep_rejected} |" in page


def is_whole_score(document: dict[str, Any]) -> bool:
    """Tell whether a ClusterScore names a target, and all of its scores count."""
    target, read = cluster_scores.read_own(document)
    return bool(target and read.values) and not read.wrong and not read.problem


_DECODERS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "AuthTokenRequest": issuing.decode,
    "ClusterScore": is_whole_score,
    "TargetSet": target_sets.decode,
    "ClusterTargetSet": target_sets.decode,
    "ClusterPlacementPolicy": decoding.decode,
    "PlacementPolicy": decoding.decode,
    "Rebalance": rebalance_status.decode,
    "ResourceClaimTemplate": lambda found: device_claims.classes(
        kinds.RESOURCE_CLAIM_TEMPLATES, found["spec"]
    ),
}


@pytest.mark.parametrize(
    ("block", "document"),
    [(b, d) for b, d in documents() if d["kind"] != AGENT_CONFIGURATION],
    ids=str,
)
def test_objects_are_accepted(block: Block, document: dict[str, Any]) -> None:
    match document["kind"]:
        case "Target" | "ClusterTarget":
            model.parse(document)
        case "Source" | "ClusterSource":
            assert str(source_rbac.parse(document))
        case "Pod" | "Job" | "Deployment" | "Workflow":
            assert mutate.proxy_patch(pod_of(document), "default", ["finalizer"], MANIFESTS)
        case "ResourceFlavor":  # Kueue's: what it adds to a pod lets it go to virtual nodes only
            flavor = document["spec"]
            added = {"nodeSelector": flavor["nodeLabels"], "tolerations": flavor["tolerations"]}
            assert not taints.untolerated([keys.PROVIDER_TAINT], flavor["tolerations"])
            assert (
                virtual_constraints.without(added, virtual_constraints.virtual_node("", "x")) == {}
            )
        case "OverridePolicy" | "ClusterOverridePolicy":
            assert not policy.parse(document).problem
        case (  # of others
            "AdmissionCheck"
            | "ClusterQueue"
            | "LocalQueue"
            | "Topology"
            | "PropagationPolicy"
            | "ManagedClusterSet"
            | "ManagedClusterSetBinding"
            | "ManagedServiceAccount"
            | "Placement"
        ):
            assert document["apiVersion"].partition("/")[0] in _OTHERS
        case kind if kind in _DECODERS:
            assert _DECODERS[kind](document)
        case "Role" | "RoleBinding" | "ClusterRole":
            pass  # an API server takes it, or tests/docs would fail
        case "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding":
            pass  # tests/integration/test_admission_policies.py gives it to an API server
        case other:
            pytest.fail(f"{block}: no check for kind {other}")


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the pod that an object is, or the template of those that it makes."""
    spec = document["spec"]
    if "podMetadata" in spec:
        return {"metadata": spec["podMetadata"]}

    template: dict[str, Any] = spec.get("template", document)
    return template


@pytest.mark.parametrize("plugin", defaults.PLUGINS, ids=lambda plugin: plugin.NAME)
def test_each_plugin_is_documented(plugin: type[Plugin]) -> None:
    page = (ROOT / "docs/scheduling.md").read_text()
    name, weight = plugin.NAME, defaults.WEIGHTS.get(plugin.NAME)
    assert name in page
    assert not weight or f"| {name} | {weight} |" in page


@pytest.mark.parametrize("line", commands("helm"))
def test_helm_is_given_values_that_the_chart_has(line: str) -> None:
    values = yaml.safe_load((ROOT / "charts/vnode/values.yaml").read_text())
    words = words_of(line)
    for flag, setting in itertools.pairwise(words):
        if flag == "--set":
            found: Any = values
            for part in setting.partition("=")[0].split("."):
                assert part in found, f"the chart has no value {setting}"
                found = found[part]

    charts = [word for word in words if word.startswith("charts/")]
    assert all((ROOT / chart / "Chart.yaml").exists() for chart in charts)


@pytest.mark.parametrize("page", ["install.md", "metrics.md"])
def test_values_named_in_pages_are_the_charts(page: str) -> None:
    values = yaml.safe_load((ROOT / "charts/vnode/values.yaml").read_text())
    tops = "|".join(key for key, value in values.items() if isinstance(value, dict))
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(rf"`((?:{tops})(?:\.[A-Za-z]+)+)(?:=[^`]*)?`", text)
    assert named
    for name in named:
        found: Any = values
        for part in name.split("."):
            if found == {}:
                break  # free-form below here

            assert part in found, f"the chart has no value {name}"
            found = found[part]
