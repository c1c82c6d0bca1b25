"""Runs the target's half of a pod: from a PodChaperon to its delegate pod, status and end."""
