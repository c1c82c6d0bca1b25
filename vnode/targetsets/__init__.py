"""TargetSets: Targets for all clusters of an inventory."""
