"""The `kdsl` command: one file per subcommand."""
