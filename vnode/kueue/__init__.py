"""Works with a Kueue of this cluster: answers its admission checks.

Kueue admits workloads by quota, and knows no cluster's nodes. A ClusterQueue may name an
AdmissionCheck of ours (`checks`): then each of its workloads that has quota waits until some target
has room for all of its pods (`controller`), is held there, and has that room promised until its
pods have come (`promised_room`). What the answer is, `deciding` says, pure.
"""
