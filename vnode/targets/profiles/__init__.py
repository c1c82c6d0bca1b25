"""ClusterProfiles of an inventory as the way to a target."""
