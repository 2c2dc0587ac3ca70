"""The way to a cluster: kubeconfigs, credentials, TLS."""
