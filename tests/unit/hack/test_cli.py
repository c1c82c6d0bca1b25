"""The command line of hack/fleet."""

from __future__ import annotations

import pytest

from hack.fleetlib import cli, fleet, kwok
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import FleetOptions, _numbered


def parsed(*words: str) -> FleetOptions:
    return cli.fleet_options(cli.parser().parse_args(["up", "/tmp/f", *words]))


def test_all_that_up_can_be_told():
    options = parsed(
        *("c1", "c2", "--nodes", "3", "--node-cpu", "4", "--node-pods", "2000", "--agents"),
        *("--connect", "c1:c2", "--connect", "c2:c1", "--no-candidate-scheduler"),
        *("--apiserver-arg=--v=4", "--agent-arg=--config=f", "--inventory"),
    )
    assert list(options.names) == ["c1", "c2"]
    assert (options.clusters.nodes, options.clusters.size.cpu) == (3, "4")
    assert (options.clusters.size.memory, options.clusters.size.pods) == ("256Gi", "2000")
    assert options.connections == [("c1", "c2"), ("c2", "c1")]
    assert (options.agents, options.candidate_scheduler) == (True, False)
    assert options.clusters.api_server_arguments == ("--v=4",)
    assert options.agent_arguments == ("--config=f",)
    assert options.inventory
    assert "secretreader" in options.programs()
    options.check()


def test_up_needs_only_names():
    options = parsed("c1")
    assert (options.clusters.nodes, options.agents, options.connections) == (1, False, [])


@pytest.mark.parametrize("text", ["", "c1", "c1:", ":c2", "c1:c2:c3"])
def test_a_connection_is_a_source_and_a_target(text, capsys):
    with pytest.raises(SystemExit):
        parsed("c1", "c2", "--connect", text)
    assert "SOURCE:TARGET" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "x"])
def test_a_number_of_nodes_is_not_negative(number, capsys):
    with pytest.raises(SystemExit):
        parsed("c1", f"--nodes={number}")
    assert "--nodes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("C1",), "cannot name a cluster"),
        (("a_b",), "cannot name a cluster"),
        (("-".join("a" * 30),), "cannot name a cluster"),
        (("c1", "c1"), "same name"),
        (("c1", "--agents", "--connect", "c1:c2"), "not started here"),
        (("c1", "--connect", "c1:c1"), "needs --agents"),
        (("c1", "--agents", "--inventory"), "add --connect"),
        (("c1", "--real-node", "c2"), "not started here"),
        (("c1", "--agents", "--bare", "c2"), "--bare names 'c2'"),
        (("c1", "--services"), "add --real-node"),
        (("c1", "--kubernetes", "c2=1.33"), "--kubernetes names 'c2'"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_at_once(words, reason):
    with pytest.raises(FleetError, match=reason):
        parsed(*words).check()


def test_each_cluster_has_the_version_that_was_asked_for(monkeypatch):
    monkeypatch.delenv("VNODE_FLEET_KUBERNETES", raising=False)
    assert parsed("c1", "c2").versions() == {"c1": "1.37.2", "c2": "1.37.2"}
    mixed = parsed("c1", "c2", "c3", "--kubernetes", "c2=1.33", "--kubernetes", "1.36")
    assert mixed.versions() == {"c1": "1.36.3", "c2": "1.33.5", "c3": "1.36.3"}
    one = parsed("c1", "c2", "--kubernetes=c2=v1.34.4")
    assert one.versions() == {"c1": "1.37.2", "c2": "1.34.4"}


def test_versions_can_be_given_to_a_whole_suite(monkeypatch):
    monkeypatch.setenv("VNODE_FLEET_KUBERNETES", "1.35,c2=1.33,c9=1.37")
    assert parsed("c1", "c2").versions() == {"c1": "1.35.4", "c2": "1.33.5"}
    asked = parsed("c1", "c2", "--kubernetes", "c2=1.34")
    assert asked.versions() == {"c1": "1.35.4", "c2": "1.34.4"}


@pytest.mark.parametrize("version", ["1.32", "1.33.7", "latest", "", "c1="])
def test_an_unknown_version_is_refused_with_the_known_ones(version):
    with pytest.raises(FleetError, match=r"known are 1\.33 \(1\.33\.5\), 1\.34"):
        parsed("c1", "--kubernetes", version)


def test_a_cluster_may_be_its_own_target():
    parsed("c1", "--agents", "--connect", "c1:c1").check()


def test_a_fleet_is_not_started_over_another(tmp_path):
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(FleetError, match="hack/fleet down"):
        fleet.up(tmp_path, parsed("c1"))


def test_a_command_for_a_fleet_that_is_not_there_fails_in_one_line(tmp_path, capsys):
    assert cli.main(["status", str(tmp_path)]) == 1
    assert "no fleet in" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("stop", "d", "c1", "agent", "--kill"), ("heal", "d", "c1"), ("add-node", "d", "c1")]
)
def test_the_other_commands_take_a_directory_and_a_name(words):
    found = cli.parser().parse_args(words)
    assert (str(found.directory), found.name) == ("d", "c1")


def test_a_node_gets_devices_labels_and_taints():
    words = ["--node-resource", "nvidia.com/gpu=8", "--node-label", "model=A100"]
    words += ["--node-taint", "gpu=yes:NoSchedule", "--node-taint", "old:NoExecute"]
    size = parsed("c1", *words).clusters.size
    node = kwok.node("c1-node-0", "c1", "10.0.0.1", size, "a")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["model"] == "A100"
    assert node["spec"]["taints"] == [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "old", "value": "", "effect": "NoExecute"},
    ]


@pytest.mark.parametrize("words", [("--node-label", "a"), ("--node-taint", "gpu=yes:Never")])
def test_what_is_no_label_or_taint_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        parsed("c1", *words)
    assert f"{words[1]!r} is not KEY=VALUE" in capsys.readouterr().err


def test_real_nodes_are_listed_or_repeated():
    options = parsed("c1", "c2", "c3", "--real-node", "c1,c2", "--real-node", "c3")
    assert options.real_nodes == ["c1", "c2", "c3"]
    options.check()


def test_a_cluster_that_is_named_twice_has_two_real_nodes():
    options = parsed("c1", "c2", "--real-node", "c2,c2")
    options.check()
    assert _numbered(options.real_nodes) == [("c2", 0), ("c2", 1)]
    with pytest.raises(FleetError, match="at most 2 real nodes"):
        parsed("c1", "--real-node", "c1,c1,c1").check()
