"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class CheckCode(StrEnum):
    """K02xx: types. K030x: names. K04xx: composition. K050x: sizes."""

    NO_OVERLOAD = "K0201"  # an operator or function that does not take these types
    ARGUMENT_COUNT = "K0202"  # too many arguments or too few
    WRONG_TYPE = "K0203"  # a value of the wrong type
    MAY_BE_MISSING = "K0204"  # a key of a map that may be missing, since no guard proves it
    MIXED_TYPES = "K0205"  # a list or map literal of several types, or a key of a type that no map has
    BAD_TEXT = "K0206"  # a constant text that its conversion rejects
    NOT_IN_RULES = "K0207"  # `null` and `dyn` outside of a `dyn fn` and devices
    COMPARED_VIEWS = "K0208"  # pods, nodes or other views compared as a whole
    MACRO_FORM = "K0209"  # a macro with the wrong arguments
    UNKNOWN_TYPE = "K0210"  # a written type that does not exist
    REPEATED_KEY = "K0211"  # a key that occurs twice in a map literal
    TOO_LATE = "K0212"  # a value that is known only after its place needs it
    UNFIT_SORT_KEY = "K0213"  # a sort key without a total order, or one that may be an error
    NOT_OPTIONAL = "K0214"  # a value used as an optional that is not one
    NEEDLESS_HAS = "K0215"  # `has` of a field that is always there
    UNTYPED_PARAM = "K0216"  # a parameter whose type does not follow from its value

    UNKNOWN_NAME = "K0301"  # a name without a declaration
    UNKNOWN_FIELD = "K0302"  # a field that the type does not have
    UNKNOWN_FUNCTION = "K0303"  # a function or method that does not exist
    SHADOWING = "K0304"  # a variable, function or parameter that hides another
    RECURSION = "K0305"  # functions or constants that depend on themselves
    NOT_HERE = "K0306"  # a name that only other kinds of rules have
    UNKNOWN_RULE = "K0307"  # a predicate, score, queue, profile or parameter that does not exist

    PROFILE_CYCLE = "K0401"  # profiles that extend each other
    USED_TWICE = "K0402"  # a rule that a profile would run twice
    WEIGHT_RANGE = "K0403"  # an invalid weight
    FINAL = "K0404"  # a `set` of a final parameter
    MANDATORY = "K0405"  # a mandatory predicate that would be disabled, or changed by a team
    SCHEDULER_TAKEN = "K0406"  # two profiles with one scheduler name
    INCOMPLETE = "K0407"  # a rule or profile without a required statement
    WRITTEN_TWICE = "K0408"  # a repeated statement that is allowed once
    MISPLACED = "K0409"  # a statement where it has no meaning
    AMBIGUOUS = "K0410"  # an ambiguous name

    NOT_GRANTED = "K0411"  # a statement that the team has no right to
    OUT_OF_RANGE = "K0412"  # a weight outside the granted range
    TEAM_BASE = "K0413"  # a team's profile that extends no active profile of the platform
    TEAM_FILES = "K0414"  # a file or package of two teams, or a file in a team's folder of no team
    PLATFORM_ONLY = "K0415"  # a `team` block or a library's profiles in a team's file
    DEPENDS_ON_TEAM = "K0416"  # an import of a team's package by the platform or another team
    OWNS_READS = "K0417"  # an `owns` that reads more than namespace, labels and service account
    TEAM_PROFILE = "K0418"  # a team with several profiles of which none is the default
    LOST_ADMIT = "K0419"  # a team's queue that admits pods that the platform's rejects
    TEAM_GRANT = "K0420"  # a grant without a useful meaning, or a pattern without files
    SAMPLE_RANGE = "K0422"  # a `sample` of no nodes

    TOO_DEEP = "K0501"  # a chain of `let`s, functions or parameters that is too deep
    TOO_LARGE = "K0502"  # a parameter that is built from others and too large
    TOO_MANY_DEVICES = "K0506"  # too many devices that extend others
