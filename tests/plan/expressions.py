"""Random nested expressions over given ones, for tests that hold two ways of evaluation equal."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]
_ORDERS = st.sampled_from(["<", "<=", "==", ">=", ">", "!="])


@dataclass(frozen=True)
class Expressions:
    """Expressions by type, of `int_leaves` and so on, and of operators; without doubles if they have no leaves."""

    int_leaves: Texts
    bool_leaves: Texts
    double_leaves: Texts | None = None

    def ints(self, depth: int) -> Texts:
        """Expressions of type int, nested up to `depth`."""
        if depth == 0:
            return self.int_leaves
        inner = self.ints(depth - 1)
        forms = [
            self.int_leaves,
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner),
            st.builds("({} ? {} : {})".format, self.bools(depth - 1), inner, inner),
            st.builds("-({})".format, inner),
        ]
        if self.double_leaves is not None:
            forms.append(st.builds("int({})".format, self.doubles(depth - 1)))
        return st.one_of(forms)

    def doubles(self, depth: int) -> Texts:
        """Expressions of type double, nested up to `depth`."""
        assert self.double_leaves is not None
        if depth == 0:
            return self.double_leaves
        inner = self.doubles(depth - 1)
        return st.one_of(
            self.double_leaves,
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("({} ? {} : {})".format, self.bools(depth - 1), inner, inner),
            st.builds("double({})".format, self.ints(depth - 1)),
        )

    def bools(self, depth: int) -> Texts:
        """Expressions of type bool, nested up to `depth`."""
        if depth == 0:
            # Operators may be in them that bind less than those around.
            return self.bool_leaves.map("({})".format)
        inner, ints = self.bools(depth - 1), self.ints(depth - 1)
        forms = [
            self.bools(0),
            st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||", "==", "<"]), inner),
            st.builds("({} {} {})".format, ints, _ORDERS, ints),
            st.builds("!({})".format, inner),
        ]
        if self.double_leaves is not None:
            doubles = self.doubles(depth - 1)
            forms.append(st.builds("({} {} {})".format, doubles, _ORDERS, doubles))
        return st.one_of(forms)
