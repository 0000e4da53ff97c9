"""Subjects of events: words with dots between them, and patterns of such."""


def matches(pattern: str, subject: str) -> bool:
    """Whether the subject fits: `*` stands for one word, `>` at the end for one or more."""
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(words) <= len(wanted):
            return False
        words = words[: len(wanted)]
    return len(wanted) == len(words) and all(part in ("*", word) for part, word in zip(wanted, words, strict=True))
