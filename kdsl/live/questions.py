"""What a running scheduler can be asked about a pod, and its answer: how both travel.

`serving` reads questions and writes answers, `scheduler_client` the other way round; `explaining` answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.read.problems import InputCode

MAX_CHANGES: Final = 50
MAX_TEXT: Final = 1_000
"""Changes that may be supposed at once, and characters of one."""
_WIDTHS: Final = (20, 1_000)


class Form(StrEnum):
    """What is wanted: the document, or text for people."""

    DOCUMENT = "document"
    TEXT = "text"
    WIDE = "wide"
    NAME = "name"
    """One line: what becomes of the pod."""


class TooManyError(Exception):
    """So many explanations are under way that another one would not come in time."""


@dataclass(frozen=True, slots=True)
class Question:
    """How a pod is to be explained: `node` asks about one node, `changes` are those of `--what-if`.

    `width` is that of text.
    """

    form: Form = Form.DOCUMENT
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
        """Read the pairs of a query; raise InvalidInputError. Pairs that mean nothing are passed over."""
        given: dict[str, str] = {}
        changes: list[str] = []
        for name, value in pairs:
            if name == "what-if":
                changes.append(value)
            else:
                given[name] = value
        try:
            form = Form(given.get("form", Form.DOCUMENT.value))
        except ValueError:
            raise _invalid("form", f"there is no such form; there are {', '.join(Form)}") from None
        if len(changes) > MAX_CHANGES or any(len(change) > MAX_TEXT for change in changes):
            raise _invalid("what-if", f"at most {MAX_CHANGES} changes of {MAX_TEXT} characters are supposed")
        width = given.get("width", "100")
        if not (width.isascii() and width.isdecimal() and len(width) < 6):
            raise _invalid("width", "the width is no number")
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
    """The answer. `document` is there where it was asked for, `text` otherwise.

    `standing` says where the pod is in the scheduler: the part of its queue, or `placed`. `rules` is the
    digest of the rules that decided.
    """

    outcome: str
    node: str
    has_faults: bool
    standing: str
    rules: str
    text: str = ""
    document: Mapping[str, Any] | None = None


def problems_document(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """Return what is wrong with a question, to be sent."""
    told = [
        {"code": str(each.code), "title": each.title, "where": each.where, "help": list(each.help)}
        for each in diagnostics
    ]
    return {"diagnostics": told}


def answer_document(pod: str, last: Mapping[str, Any] | None, explained: Explained | None) -> dict[str, Any]:
    """Return the answer to be sent: the explanation, and the `last` decision that is remembered."""
    told: dict[str, Any] = {"pod": pod, "last": last, "explanation": None}
    if explained is None:
        return told
    return {
        **told,
        "explanation": explained.document,
        "text": explained.text,
        "outcome": explained.outcome,
        "node": explained.node,
        "hasFaults": explained.has_faults,
        "standing": explained.standing,
        "rules": explained.rules,
    }


def _invalid(where: str, title: str) -> InvalidInputError:
    return InvalidInputError([Diagnostic(InputCode.VALUE, title, where=where)])
