"""The plugin that finds volumes for the claims of pods and binds them."""
