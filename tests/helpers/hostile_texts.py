"""Texts that would forge a log line or send control codes to the terminal that shows it."""

FORGED = {
    "a line feed": "x\n2026-01-31 12:00:00.000 ERROR root: forged",
    "a carriage return": "x\rforged",
    "an escape sequence": "x\x1b[2J",
    "a C1 control": "x\x9b2J",
    "NUL": "x\x00y",
    "bidi": "x\u202eforged",
    "a line separator": "x\u2028forged",
    "too long": "x" * 400_000,
}
