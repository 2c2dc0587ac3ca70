"""Rules that change or are compared while the scheduler runs."""
