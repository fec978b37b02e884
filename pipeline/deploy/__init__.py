"""Kubernetes manifests for KubeRay, rendered from one file of values and the job or application that it names."""
