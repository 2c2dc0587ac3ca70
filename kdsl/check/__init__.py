"""Checks syntax trees and builds the `RuleSet`: names, types, binding times, reads and profiles."""
