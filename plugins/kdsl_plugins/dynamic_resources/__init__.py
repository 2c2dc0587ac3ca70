"""The plugin that handles device claims (DRA) of pods that have none."""
