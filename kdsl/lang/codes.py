"""The codes of the diagnostics of this layer, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class LangCode(StrEnum):
    """K01xx is syntax, K035x is loading, K08xx is style."""

    UNEXPECTED = "K0101"  # something stands where the grammar wants something else
    HEADER = "K0102"  # the file does not start with `kdsl 1`
    UNBALANCED = "K0103"  # a bracket without its partner
    UNKNOWN_KEYWORD = "K0104"  # a word that starts no declaration and no statement here
    UNTERMINATED_STRING = "K0105"  # a string without its closing quote
    BAD_CHARACTER = "K0106"  # a character the language does not use
    WRONG_OPERATOR = "K0107"  # an operator of another language: `=`, `&`, `and`, …
    BAD_ESCAPE = "K0108"  # an escape sequence that CEL does not have
    NUMBER_RANGE = "K0109"  # a number outside int64, uint64 or double
    RESERVED_WORD = "K0110"  # a word CEL reserves, used as a name
    MESSAGE_CONSTRUCTION = "K0111"  # `Type{…}`, the one part of CEL that is left out
    TOO_DEEP = "K0112"  # nesting beyond the stated limit
    BAD_HOLE = "K0113"  # a `${…}` hole in a reason that is not one expression
    BAD_CLAUSE = "K0114"  # a clause that is written twice or lacks a part
    MISSING_ELSE = "K0115"  # a condition without what happens when it does not hold
    ORDER = "K0116"  # `package`, imports and declarations out of order
    TOO_MANY = "K0117"  # the file has more syntax errors than are worth listing

    UNKNOWN_PACKAGE = "K0350"  # an import of a package that no file has
    IMPORT_CYCLE = "K0351"  # packages that import each other
    DUPLICATE_ALIAS = "K0352"  # two imports of one file under one name
    DUPLICATE_DECLARATION = "K0353"  # two declarations of one kind and name in a package
    NO_PACKAGE = "K0354"  # a file that does not say which package it belongs to
    UNREADABLE = "K0355"  # a file or folder that cannot be read
    NOT_UTF8 = "K0356"  # a file that is not UTF-8 text
    LINK_LOOP = "K0357"  # a folder that contains itself through a symbolic link
    NO_RULES = "K0358"  # a path without any rule file

    FORMAT_REFUSED = "K0801"  # the formatter would not have kept the meaning or a comment
