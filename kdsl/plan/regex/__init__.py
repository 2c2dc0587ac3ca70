"""Regular expressions with RE2's syntax and its promise: time linear in the text, whatever the pattern.

`matches`, `find` and `findAll` use it. Python's own `re` backtracks, so that one pattern in a rule file could
stop the scheduler; and its language differs. The parser refuses what RE2 refuses; scripts (`\\p{Greek}`) are
refused as well, because Python's Unicode tables do not have them.
"""

from kdsl.plan.regex.automaton import Regex, compile_regex
from kdsl.plan.regex.finder import Finder
from kdsl.plan.regex.syntax import RegexError

__all__ = ["Finder", "Regex", "RegexError", "compile_regex"]
