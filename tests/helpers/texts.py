"""Texts that are hard to tokenize."""

from __future__ import annotations

TEXTS = [
    "",
    "The next day is bright and sunny",
    "naïve café, Ångström, Zürich",
    "cafe\u0301 with a combining accent",
    "👩\u200d👩\u200d👧\u200d👦 family, 🇩🇪 flag, 👍🏽 thumb",
    "don't we'll I'd they're it's",
    "In 2023, 12345 + 678 = 13,023 or 1e-5",
    "two  spaces   three\tand a tab \n\n new lines\r\n end ",
    "今日は良い天気です。한국어 텍스트",
    "a\x00b\x07c\x1b[0m",
    "<|endoftext|> <|im_start|>user <|im_end|> [MASK] [CLS]",
    "\u202eright to left\u202c \ufeffbom \u2028 line",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff",
]
