"""A question about a pod to a running scheduler, and its answer, as HTTP parameters and documents.

`application` reads questions and writes answers, `scheduler_client` does the opposite; `explaining` answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.read.codes import InputCode

MAX_CHANGES: Final = 50
MAX_TEXT: Final = 1_000
"""The most changes supposed at once, and the most characters of one."""
_WIDTHS: Final = (20, 1_000)


class ReportForm(StrEnum):
    """The form of the answer: a document, or text for people."""

    DOCUMENT = "document"
    TEXT = "text"
    WIDE = "wide"
    NAME = "name"
    """One line: the result for the pod."""


class TooManyError(Exception):
    """Too many explanations are under way for another one to be answered in time."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request for the explanation of a pod: `node` selects one node, `changes` are those of `--what-if`.

    `width` is that of the text.
    """

    form: ReportForm = ReportForm.DOCUMENT
    node: str = ""
    changes: tuple[str, ...] = ()
    everything: bool = False
    traceback: bool = False
    width: int = 100

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the question as the pairs of a query."""
        flags = (("all", self.everything), ("traceback", self.traceback))
        return (
            ("form", self.form.value),
            ("width", str(self.width)),
            *((("node", self.node),) if self.node else ()),
            *(("what-if", change) for change in self.changes),
            *((name, "true") for name, is_set in flags if is_set),
        )

    @staticmethod
    def of(pairs: Iterable[tuple[str, str]]) -> Question:
        """Read the pairs of a query; raise InvalidInputError. Unknown pairs are ignored."""
        given: dict[str, str] = {}
        changes: list[str] = []
        for name, value in pairs:
            if name == "what-if":
                changes.append(value)
            else:
                given[name] = value
        try:
            form = ReportForm(given.get("form", ReportForm.DOCUMENT.value))
        except ValueError:
            raise _invalid("form", "there is no such form", f"forms are {', '.join(ReportForm)}") from None
        if len(changes) > MAX_CHANGES or any(len(change) > MAX_TEXT for change in changes):
            most = f"at most {MAX_CHANGES} changes of {MAX_TEXT:,} characters are supposed"
            raise _invalid("what-if", "there are too many changes, or one is too long", most)
        width = given.get("width", "100")
        if not (width.isascii() and width.isdecimal() and len(width) < 6):
            raise _invalid("width", "the width is no number", "write a number of columns: `width=100`")
        return Question(
            form,
            given.get("node", ""),
            tuple(changes),
            given.get("all") == "true",
            given.get("traceback") == "true",
            max(_WIDTHS[0], min(int(width), _WIDTHS[1])),
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer: either `document` or `text`, as requested.

    `standing` is the pod's place in the scheduler: the part of its queue, or `placed`. `rules` is the digest
    of the rules that decided. `warnings` are about the question.
    """

    outcome: str
    node: str
    has_faults: bool
    standing: str
    rules: str
    text: str = ""
    document: Mapping[str, Any] | None = None
    warnings: tuple[Diagnostic, ...] = ()


def problems_document(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """Return the errors or warnings of a question as a document to send."""
    documents = [
        {"code": str(each.code), "title": each.title, "where": each.where, "help": list(each.help)}
        for each in diagnostics
    ]
    return {"diagnostics": documents}


def answer_document(pod: str, last: Mapping[str, Any] | None, explained: Explained | None) -> dict[str, Any]:
    """Return the answer to send: the explanation, and the `last` recorded decision."""
    document: dict[str, Any] = {"pod": pod, "last": last, "explanation": None}
    if explained is None:
        return document
    return {
        **document,
        "explanation": explained.document,
        "text": explained.text,
        "outcome": explained.outcome,
        "node": explained.node,
        "hasFaults": explained.has_faults,
        "standing": explained.standing,
        "rules": explained.rules,
        **problems_document(explained.warnings),
    }


def _invalid(where: str, title: str, help: str) -> InvalidInputError:
    return InvalidInputError([Diagnostic(InputCode.VALUE, title, where=where, help=(help,))])
