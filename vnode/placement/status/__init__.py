"""What came of each policy: its workloads by cluster, beside their plans."""
