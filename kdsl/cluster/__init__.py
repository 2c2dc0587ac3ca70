"""Kubernetes objects in the form that kdsl reads, and the columnar snapshot that scheduling runs on."""
