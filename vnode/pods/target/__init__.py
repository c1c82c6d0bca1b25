"""The target's half of a pod: from a PodChaperon to its delegate pod, its status and its end."""
