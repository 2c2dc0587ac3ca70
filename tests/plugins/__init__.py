"""Tests of the plugins that come with kdsl."""
