"""Placement policies: how many pods of a workload go to which virtual node. No I/O."""
