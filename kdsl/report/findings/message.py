"""The plain text of a finding, for the forms with a single text field."""

from __future__ import annotations

from kdsl.base.diagnostic import Diagnostic


def message_lines(diagnostic: Diagnostic) -> list[str]:
    """Return title, label, notes, help and fixes as lines; the place only if it is no span."""
    title = diagnostic.title if diagnostic.span else f"{diagnostic.where}: {diagnostic.title}".lstrip(": ")
    notes = [f"note: {note}" for note in diagnostic.notes]
    help_ = [f"help: {line}" for line in (*diagnostic.help, *(fix.title for fix in diagnostic.fixes))]
    return [title, *([diagnostic.label] if diagnostic.label else []), *notes, *help_]
