"""Finds, downloads or builds the programs of a cluster, and caches them."""
