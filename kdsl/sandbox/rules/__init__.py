"""The rules for objects: defaults, validation and admission."""
