"""An estimate of the tokens of a text that needs no tokenizer."""

from __future__ import annotations

import re

_PIECES = re.compile(
    r"\d"  # tokenizers of current code models spend one token on each digit
    r"|[A-Za-z]{1,10}|[^\W\d_]"  # letters of other alphabets seldom share a token with many others
    r"|[^\w\s]{1,3}|_+"
    r"|\s*\n| +(?= \d)| (?=\d)|  +"  # a line's end, an indentation, a space that no word swallows
)


def estimate(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    Counts digits, words, runs of punctuation and of white space. Characters by a constant would not do: grids
    written as numbers have 1.6 to 2.1 characters a token, programs 3.0 to 3.8. Against Qwen's byte-pair
    encoding the estimate is 1.02 to 1.10 times the true count on prompts with grids, 1.05 to 1.35 times on
    programs and prose. Tokenizers that join digits need fewer still.
    """
    return len(_PIECES.findall(text))


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, at most `tokens` of them (estimated), in whole lines if possible.

    What is left out is counted at the end; that line comes on top of the limit.
    """
    if estimate(text) <= tokens:
        return text
    end = 0
    for number, piece in enumerate(_PIECES.finditer(text)):
        if number == tokens:
            break
        end = piece.end()
    newline = text.rfind("\n", end // 2, end)
    kept = text[: newline if newline > 0 else end].rstrip()
    return f"{kept}\n[{len(text) - len(kept)} more characters left out]"
