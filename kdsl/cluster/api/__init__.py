"""Objects of the Kubernetes API, as far as kdsl reads them: structs, kinds and the syntax of names."""
