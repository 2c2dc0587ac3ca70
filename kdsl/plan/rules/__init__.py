"""Rules as programs, and as plugins of the hook table."""
