"""Virtual nodes and their leases; the ClusterSummary that a target writes of itself."""
