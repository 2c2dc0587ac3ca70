"""Tests of rules: YAML files of cases, run against rule files, with coverage and mutants."""
