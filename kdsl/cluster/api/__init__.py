"""Objects of the Kubernetes API, with the fields that kdsl reads: structs, kinds and the syntax of names."""
