"""How metrics-server is made known to an API server that has no Service network."""

from __future__ import annotations

import pytest

from hack.fleetlib import addresses, cli, metricsserver
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import catalogue


def test_its_service_has_no_selector_and_its_endpoint_is_the_process():
    found = {thing["kind"]: thing for _path, thing in metricsserver.manifests("10.0.0.7")}
    service, slice_ = found["Service"], found["EndpointSlice"]

    assert "selector" not in service["spec"]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == "metrics-server"
    assert slice_["endpoints"][0]["addresses"] == ["10.0.0.7"]
    assert slice_["ports"][0]["port"] == addresses.METRICS_SERVER
    assert slice_["ports"][0]["name"] == service["spec"]["ports"][0]["name"]
    assert found["APIService"]["spec"]["service"]["name"] == "metrics-server"


def test_loopback_addresses_are_refused_with_the_reason():
    metricsserver.check("netns")
    with pytest.raises(FleetError, match="needs network namespaces"):
        metricsserver.check("loopback")


def test_it_is_got_only_where_it_is_asked_for():
    assert "metrics-server" not in catalogue.USUAL
    for words, wanted in (([], False), (["--metrics-server"], True)):
        arguments = cli.parser().parse_args(["up", "/d", "c1", *words])
        assert ("metrics-server" in cli.fleet_options(arguments).programs()) is wanted
