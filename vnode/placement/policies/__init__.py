"""Placement policies as users write them: decoded, judged, found for a pod, and in force."""
