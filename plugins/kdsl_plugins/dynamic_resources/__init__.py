"""The plugin that speaks for device claims (DRA) where a pod has none."""
