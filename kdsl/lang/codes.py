"""The codes of the diagnostics of this layer, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class LangCode(StrEnum):
    """K010x and K011x are syntax, K012x and K013x that of YAML, K035x is loading, K08xx is style."""

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

    YAML_SYNTAX = "K0120"  # a text that is not YAML
    YAML_DUPLICATE_KEY = "K0121"  # a key that a mapping holds twice
    YAML_TOO_LARGE = "K0122"  # a YAML text beyond the stated limits
    YAML_FORM = "K0123"  # tags, keys and aliases of YAML that mean nothing here

    TWIN_SHAPE = "K0130"  # text, a list or a mapping where the YAML form of rules has something else
    TWIN_KEY = "K0131"  # a key, statement or kind that the YAML form of rules does not have
    TWIN_MISSING = "K0132"  # a key that the YAML form of rules needs
    TWIN_VALUE = "K0133"  # a value that the YAML form of rules does not allow

    UNKNOWN_PACKAGE = "K0350"  # an import of a package that no file has
    IMPORT_CYCLE = "K0351"  # packages that import each other
    DUPLICATE_ALIAS = "K0352"  # two imports of one file under one name
    DUPLICATE_DECLARATION = "K0353"  # two declarations of one kind and name in a package
    NO_PACKAGE = "K0354"  # a file that does not say which package it belongs to
    UNREADABLE = "K0355"  # a file or folder that cannot be read
    NOT_UTF8 = "K0356"  # a file that is not UTF-8 text
    LINK_LOOP = "K0357"  # a folder that contains itself through a symbolic link
    NO_RULES = "K0358"  # a path without any rule file
    CONTESTED_PACKAGE = "K0359"  # a package that two libraries hold
    FILE_TOO_LARGE = "K0360"  # a rule file beyond the stated limit
    LINK_LEAVES = "K0361"  # a link that leads out of the folder it stands in
    SPECIAL_FILE = "K0362"  # a pipe, device or socket in the place of a rule file

    CONVERT_REFUSED = "K0124"  # a file that the other form cannot hold

    FORMAT_REFUSED = "K0801"  # the formatter would not have kept the meaning or a comment
