"""The codes of the diagnostics of this layer, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class CheckCode(StrEnum):
    """K02xx is types, K030x names, K04xx composition, K12xx what the language has but kdsl does not yet."""

    NO_OVERLOAD = "K0201"  # an operator or function that does not take these types
    ARGUMENT_COUNT = "K0202"  # too many arguments or too few
    WRONG_TYPE = "K0203"  # another type than the place asks for
    MAY_BE_MISSING = "K0204"  # a key of a map that no guard proves to be there
    MIXED_TYPES = "K0205"  # a list or map literal of several types, or a key of a type that no map has
    BAD_TEXT = "K0206"  # a constant text that its conversion would refuse
    NOT_IN_RULES = "K0207"  # `null` and `dyn` outside of a `dyn fn` and devices
    COMPARED_VIEWS = "K0208"  # pods, nodes and the like compared as a whole
    MACRO_FORM = "K0209"  # a macro with the wrong arguments
    UNKNOWN_TYPE = "K0210"  # a written type that does not exist
    REPEATED_KEY = "K0211"  # a key that a map literal holds twice
    TOO_LATE = "K0212"  # a value that is known only after the place needs it
    UNFIT_SORT_KEY = "K0213"  # a sort key without a total order, or one that may be an error
    NOT_OPTIONAL = "K0214"  # something optional is asked for
    NEEDLESS_HAS = "K0215"  # `has` of a field that is always there
    UNTYPED_PARAM = "K0216"  # a parameter whose type its value does not tell

    UNKNOWN_NAME = "K0301"  # a name that nothing declares
    UNKNOWN_FIELD = "K0302"  # a field that the type does not have
    UNKNOWN_FUNCTION = "K0303"  # a function or method that does not exist
    SHADOWING = "K0304"  # a variable, function or parameter that would hide another
    RECURSION = "K0305"  # functions or constants that need themselves
    NOT_HERE = "K0306"  # a name that other kinds of rules have
    UNKNOWN_RULE = "K0307"  # a predicate, score, queue, profile or parameter that does not exist

    PROFILE_CYCLE = "K0401"  # profiles that extend each other
    USED_TWICE = "K0402"  # a rule that a profile would run twice
    WEIGHT_RANGE = "K0403"  # a weight that is no weight
    FINAL = "K0404"  # a `set` of a parameter that is final
    MANDATORY = "K0405"  # a mandatory predicate that would be disabled, or changed by a team
    SCHEDULER_TAKEN = "K0406"  # two profiles with one scheduler name
    INCOMPLETE = "K0407"  # a rule or profile without what it is for
    WRITTEN_TWICE = "K0408"  # a statement that may stand once
    MISPLACED = "K0409"  # a statement where it has no meaning
    AMBIGUOUS = "K0410"  # a name that stands for two things

    NOT_GRANTED = "K0411"  # a statement that the platform gave a team no right to
    OUT_OF_RANGE = "K0412"  # a weight outside the range that a team was granted
    TEAM_BASE = "K0413"  # a team's profile that extends none of the platform's that is in use
    TEAM_FILES = "K0414"  # a file or package that would belong to two, or to nobody in a team's folder
    PLATFORM_ONLY = "K0415"  # a `team` block or a library's profiles that come by a team's file
    DEPENDS_ON_TEAM = "K0416"  # a file of the platform that imports a team's
    OWNS_READS = "K0417"  # an `owns` that reads more than namespace, labels and service account
    TEAM_PROFILE = "K0418"  # a team with several profiles of which none is its first
    LOST_ADMIT = "K0419"  # a team's queue that lets in what the platform's keeps out
    TEAM_GRANT = "K0420"  # a grant or pattern that grants nothing sensible

    TOO_DEEP = "K0501"  # a chain of `let`s, functions or parameters that nests without measure
    TOO_LARGE = "K0502"  # a parameter made of others that grow with each
