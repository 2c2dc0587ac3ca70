"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class LangCode(StrEnum):
    """K010x and K011x are syntax, K012x and K013x are YAML, K035x is loading, K08xx is style."""

    UNEXPECTED = "K0101"  # a token that the grammar does not allow at its place
    HEADER = "K0102"  # the file does not start with `kdsl 1`
    UNBALANCED = "K0103"  # a bracket without its partner
    UNKNOWN_KEYWORD = "K0104"  # a word that starts no declaration and no statement here
    UNTERMINATED_STRING = "K0105"  # a string without its closing quote
    BAD_CHARACTER = "K0106"  # a character the language does not use
    WRONG_OPERATOR = "K0107"  # an operator of another language: `=`, `&`, `and`, …
    BAD_ESCAPE = "K0108"  # an escape sequence that CEL does not have
    NUMBER_RANGE = "K0109"  # a number outside int64, uint64 or double
    RESERVED_WORD = "K0110"  # a word CEL reserves, used as a name
    MESSAGE_CONSTRUCTION = "K0111"  # `Type{…}`, the only part of CEL that kdsl leaves out
    TOO_DEEP = "K0112"  # nesting beyond the stated limit
    BAD_HOLE = "K0113"  # a `${…}` hole in a reason that is not one expression
    BAD_CLAUSE = "K0114"  # a clause that is written twice or lacks a part
    MISSING_ELSE = "K0115"  # a condition without an `else` that says what happens when it fails
    ORDER = "K0116"  # `package`, imports and declarations out of order
    TOO_MANY = "K0117"  # more syntax errors in the file than are listed

    YAML_SYNTAX = "K0120"  # a text that is not YAML
    YAML_DUPLICATE_KEY = "K0121"  # a key that occurs twice in a mapping
    YAML_TOO_LARGE = "K0122"  # a YAML text beyond the limits
    YAML_FORM = "K0123"  # tags, keys and aliases of YAML that kdsl does not support

    TWIN_SHAPE = "K0130"  # text, a list or a mapping where the YAML form of rules needs another type
    TWIN_KEY = "K0131"  # a key, statement or kind that the YAML form of rules does not have
    TWIN_MISSING = "K0132"  # a key that the YAML form of rules needs
    TWIN_VALUE = "K0133"  # a value that the YAML form of rules does not allow

    UNKNOWN_PACKAGE = "K0350"  # an import of a package that no file belongs to
    IMPORT_CYCLE = "K0351"  # packages that import each other
    DUPLICATE_ALIAS = "K0352"  # two imports of one file under one name
    DUPLICATE_DECLARATION = "K0353"  # two declarations of one kind and name in a package
    NO_PACKAGE = "K0354"  # a file without its package
    UNREADABLE = "K0355"  # a file or folder that cannot be read
    NOT_UTF8 = "K0356"  # a file that is not UTF-8 text
    LINK_LOOP = "K0357"  # a folder that contains itself through a symbolic link
    NO_RULES = "K0358"  # a path without any rule file
    CONTESTED_PACKAGE = "K0359"  # a package that is in two libraries
    FILE_TOO_LARGE = "K0360"  # a rule file beyond the size limit
    LINK_LEAVES = "K0361"  # a link that leads out of its folder
    SPECIAL_FILE = "K0362"  # a pipe, device or socket in place of a rule file
    IDLE_PATTERN = "K0363"  # a pattern of a file of ignored names that fits no name

    CONVERT_REFUSED = "K0124"  # a file that the other form cannot hold

    FORMAT_REFUSED = "K0801"  # formatting would change the meaning or lose a comment
