"""Constructions that the project's style avoids, each with an example for the tests."""

import re
from dataclasses import dataclass

_START = r"(?:^|(?<=[.:;!?] ))"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A construction to avoid.

    Attributes:
        name: printed with each finding.
        regex: searched in a paragraph, with inline code replaced by `x`.
        advice: what to write instead.
        example: a sentence that must be found.
    """

    name: str
    regex: re.Pattern[str]
    advice: str
    example: str


def _pattern(name: str, regex: str, advice: str, example: str) -> Pattern:
    return Pattern(name, re.compile(regex, re.IGNORECASE), advice, example)


PATTERNS = (
    _pattern(
        "is-no",
        r"(?<!there )\b(?:is|are|was|were|be) (?-i:no|none)\b(?! (?:longer|more|less|fewer|better|worse|way))",
        "“invalid x”, “not found”, “not a …”",
        "`x` is no regular expression.",
    ),
    _pattern(
        "stands-in",
        r"\b(?:stands?|stood|standing) (?:in|on|at|behind|beside|there|where|below|above|before|with|under|next)\b",
        "name the location: “is in”, “lives in”, “follows”",
        "All settings stand in one file.",
    ),
    _pattern(
        "lies-in",
        r"\b(?:lies|lie|lay|lying) (?:in|on|at|outside|below|above|within|beside|behind|there|where|under|between)\b",
        "“is in”, “is below”",
        "The index lies in the home.",
    ),
    _pattern("goes-with", r"\b(?:goes?|went) with\b", "“belongs to”, “accompanies”", "A test goes with each module."),
    _pattern(
        "of-a",
        rf"{_START}(?-i:Of) (?:a|an|the|each|every|two|what|all|those|several|such|one)\b",
        "start with the subject, or with “For …”",
        "Of a PDF, the line is that of its text.",
    ),
    _pattern(
        "what-is",
        rf"{_START}(?-i:What|Where|Which|Whose)\b(?![^.?!]*\?)[^.?!,;:]{{3,60}}? "
        r"(?:is|are|was|were|stays?|comes?|goes|has|have) [^.?!:]*\.",
        "make a noun the subject of the sentence",
        "What exists on disk is read first.",
    ),
    _pattern("is-what", r"\b(?:is|are|was) what\b", "name the thing", "The fold is what a reader sees."),
    _pattern(
        "what-was",
        r"\bwhat (?:is|are|was|were) (?:said|told|asked|given|meant|there|wanted|taken|made|new)\b",
        "name the thing",
        "It prints what was asked.",
    ),
    _pattern("at-work", r"\bat work\b", "“running”", "The daemon is at work since ten."),
    _pattern(
        "is-whole",
        r"\b(?:is|are|be|was|were|stays?|remains?|left|kept|keeps) (?:whole|well)\b"
        r"(?![- ](?:known|kept|formed|defined|below|above|over|under))",
        "“consistent”, “complete”, “healthy”",
        "The index is whole.",
    ),
    _pattern("of-before", r"\b(?:of|from|as) before\b(?! [a-z]+ing)", "“existing”, “earlier”", "An index of before."),
    _pattern(
        "told-of", r"\b(?:told|asked) (?:of|about it)\b|\basked by\b", "use the active voice", "Agents told of it."
    ),
    _pattern(
        "looked-for",
        r"\b(?:is|are|be|was|were|been) (?:looked|asked|waited) (?:for|at|after)\b",
        "use the active voice: “the sensor checks …”",
        "Nothing could be looked for.",
    ),
    _pattern(
        "in-turn", r"\b(?:in|by) turns?\b|\bquieter hour\b", "“alternately”, “one by one”", "Each is tried in turn."
    ),
    _pattern(
        "nobody",
        r"\b(?:nobody|no one) (?:took|takes|asked|asks|wants|wanted|waits|said|says|told|knows|has|is)\b",
        "name the actor",
        "Nobody took the request yet.",
    ),
    _pattern("so-as", r"\bso (?:far|long) as\b", "“as far as”, “as long as”", "It runs so long as it can."),
    _pattern(
        "is-said",
        r"\b(?:it|as|that) (?:is|was) said\b|\bas said\b|\b(?:is|are|was|were) said (?:of|to|once|in|with|where)\b",
        "“reports”, “prints”, “is documented”",
        "It is said once.",
    ),
    _pattern(
        "taken-for", r"\b(?:is|are|was|were|be) taken (?:for|as)\b", "“is treated as”", "A word is taken for a path."
    ),
    _pattern("its-place", r"\bgiven (?:its|a|their) places?\b", "“add … to”", "A room has to be given its place."),
    _pattern("that-which", r"\b(?:that|those) which\b|\bof which each\b", "“the X that”", "It is that which failed."),
    _pattern(
        "archaic",
        r"\b(?:anew|afresh|thereby|therein|thereof|wherein|whereby|whence|hitherto|henceforth|lest|amid|albeit|forthwith|beforehand|likewise)\b",
        "use a plain word",
        "The index is built anew.",
    ),
    _pattern("beside", r"\bbeside\b", "“next to”, “in addition to”, “while”", "It runs beside the server."),
    _pattern("at-hand", r"\bat hand\b|\bby hand of\b", "“available”", "The model is at hand."),
    _pattern("but-for", r"\b(?:but for|save for)\b|\bexcept that which\b", "“except”", "All files but for links."),
    _pattern(
        "nothing-that",
        r"\bthere (?:is|are|was|were) (?:nothing|none) (?:that|which)\b|\bof which the\b",
        "“no X”",
        "There is nothing that matches.",
    ),
    _pattern(
        "let-go",
        r"\blets? go\b|\blet (?:in|out)\b|\bis let\b|\bare let\b",
        "“release”, “drop”, “admit”",
        "The lock is let go.",
    ),
    _pattern("of-ours", r"\bof (?:ours|theirs|yours|mine)\b", "“our”, “their”", "Errors of ours."),
    _pattern(
        "the-one-that",
        r"\b(?:the|that|an?|each|every|another|any) ones? (?:which|whose|where)\b",
        "repeat the noun",
        "It takes the one whose name matches.",
    ),
    _pattern(
        "as-if-none",
        r"\b(?:as if|as though) (?:it|they|there) (?:were|was|is|are) (?:none|no|not there)\b",
        "“is ignored”",
        "It acts as if it were not there.",
    ),
    _pattern(
        "has-it",
        r"\bhow (?:large|long|many|much|often) (?:it|they) (?:is|are) by\b",
        "name the quantity",
        "How large it is by pip.",
    ),
    _pattern(
        "and-start",
        r"(?:^|(?<=[.!?] ))(?-i:And|But|Nor) (?=[a-z])",
        "join it to the sentence before",
        "It stops. And it waits.",
    ),
)
