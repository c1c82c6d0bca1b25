"""What makes a release: `hack/dist` builds, describes and sums up its artefacts."""
