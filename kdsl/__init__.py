"""kdsl: a Kubernetes-compatible scheduler whose behaviour is a folder of rule files."""

__version__ = "0.1.0"
