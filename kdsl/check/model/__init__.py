"""The checked model: types, typed expressions, the `RuleSet` and the codes of diagnostics."""
