"""The address plan of a fleet."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from hack.fleetlib import addresses
from hack.fleetlib.addresses import AddressPlan
from hack.fleetlib.errors import FleetError


def test_clusters_of_a_namespaced_fleet_share_a_subnet_with_the_host():
    plan = AddressPlan("netns", 7)
    subnet = ipaddress.ip_network(f"{plan.host}/24", strict=False)
    assert plan.host == "10.201.7.1"
    assert all(ipaddress.ip_address(plan.cluster(i)) in subnet for i in (0, 1, 59))


def test_clusters_without_root_have_loopback_addresses_of_their_own():
    plan = AddressPlan("loopback", 7)
    found = [plan.cluster(i) for i in range(3)]
    assert len(set(found)) == 3
    assert all(ipaddress.ip_address(address).is_loopback for address in found)
    assert plan.netns(0) is None


def test_two_fleets_share_no_address_and_no_name():
    one, other = AddressPlan("netns", 1), AddressPlan("netns", 2)
    assert {one.cluster(i) for i in range(60)}.isdisjoint(other.cluster(i) for i in range(60))
    assert {one.hub, one.netns(0)}.isdisjoint({other.hub, other.netns(0)})


@pytest.mark.parametrize("index", [-1, 60])
def test_a_fleet_has_room_for_sixty_clusters(index):
    with pytest.raises(FleetError, match="at most 60"):
        AddressPlan("netns", 0).cluster(index)


def test_replicas_services_and_second_nodes_have_addresses_of_their_own():
    plan = AddressPlan("netns", 7)
    subnet = ipaddress.ip_network(f"{plan.host}/24", strict=False)
    found = [
        address
        for i in range(addresses.CLUSTERS)
        for address in (
            plan.replica(i, 0),
            plan.replica(i, 1),
            plan.service(i),
            plan.real_node(i, 1),
        )
    ]
    assert len(found) == len(set(found))
    assert plan.replica(3, 0) == plan.real_node(3, 0) == plan.cluster(3)
    assert all(ipaddress.ip_address(address) in subnet for address in found)
    with pytest.raises(FleetError, match="at most 2"):
        plan.replica(0, 2)


def test_names_of_links_fit_into_what_the_kernel_takes():
    assert len(f"{AddressPlan('netns', 255).prefix}-host") <= 15


def test_the_first_slot_tried_depends_on_the_directory_alone():
    slots = {addresses.preferred_slot(Path(f"/tmp/fleet-{n}")) for n in range(50)}
    assert addresses.preferred_slot(Path("/tmp/a")) == addresses.preferred_slot(Path("/tmp/a"))
    assert len(slots) > 25
    assert all(0 <= slot < addresses.SLOTS for slot in slots)


def test_ports_of_a_cluster_neither_collide_nor_reach_into_those_of_virtual_nodes():
    ports = [
        value for name, value in vars(addresses).items() if name.isupper() and name not in _OTHER
    ]
    ports = [port for port in ports if isinstance(port, int)]
    assert len(ports) == len(set(ports)) >= 9
    assert max(ports) < 10250


_OTHER = {"SLOTS", "CLUSTERS", "REPLICAS"}
