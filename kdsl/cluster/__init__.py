"""Kubernetes objects as kdsl reads them, and the columnar snapshot that scheduling runs on."""
