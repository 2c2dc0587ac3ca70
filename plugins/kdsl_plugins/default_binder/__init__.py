"""The plugin that binds pods through the scheduler's `Binder` port."""
