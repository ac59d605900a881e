"""What one visitor may ask for, so that a shared host stays usable for all."""

from __future__ import annotations

MAX_TEXT_CHARACTERS = 5_000  # the text is part of the page's address
MAX_SEED = 99_999
MAX_MAP_TOKENS = 256
MAX_LESSON_TOKENS = 128  # whose lessons draw more than a map of each
MAX_WORDS = 64  # of a sentence that is differentiated live
MAX_PROMPT_TOKENS = 512
MAX_NEW_TOKENS = 200
MAX_MATRIX_ROWS, MAX_MATRIX_COLUMNS, MAX_MATRIX_VALUE = 12, 8, 100  # typed into a table
MAX_SMALL_TOKENS = 12  # sentences whose every number is drawn
MAX_WAITING_JOBS = 8
MODEL_CACHE_BYTES = 8 * 1024**3
RUN_CACHE_BYTES = 256 * 1024**2
CHART_CACHE_BYTES = 32 * 1024**2  # descriptions of charts with their rows
SMALL_CACHE_BYTES = 4 * 1024**2  # of tables and numbers, a few kilobytes each


class OverLimit(ValueError):
    """An input that exceeds a limit; the message says by how much and what to do."""


def check_text(text: str) -> None:
    """Raise OverLimit for a text that is not worth tokenizing."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise OverLimit(
            f"The text has {len(text):,} characters, {len(text) - MAX_TEXT_CHARACTERS:,} over the "
            f"limit of {MAX_TEXT_CHARACTERS:,}. Shorten it; what you typed is still in the box."
        )


def check_tokens(n_tokens: int, limit: int, purpose: str) -> None:
    """Raise OverLimit when a tokenized text is too long for `purpose` ("a head map")."""
    if n_tokens > limit:
        raise OverLimit(
            f"The text is {n_tokens} tokens long, {n_tokens - limit} over the limit of {limit} "
            f"for {purpose}. Shorten it; what you typed is still in the box."
        )


PACKED_CACHE_BYTES = 64 * 1024**2
STREAM_CACHE_BYTES = 256 * 1024**2
LAYER_CACHE_BYTES = 128 * 1024**2
MAX_TOKENIZER_CHARACTERS = 400  # of the page that shows every token three times
EMBEDDING_CACHE_BYTES = 32 * 1024**2
STATISTICS_CACHE_BYTES = 8 * 1024**2
MASKED_WORD_CACHE_BYTES = 16 * 1024**2  # without their output matrices, which are the models'
PAIR_CACHE_BYTES = 16 * 1024**2
MIN_TRACED_TOKENS, MAX_TRACED_TOKENS = 2, 40  # new tokens whose attention is kept
MAX_TRACED_PROMPT = 96
TRACE_CACHE_BYTES = 192 * 1024**2
MAX_SINK_TOKENS = 32  # of a text that is run again with other beginnings
MAX_TIMED_TOKENS, MAX_TIMED_REPEATS = 512, 5  # new tokens, each generation run anew
MAX_TIMED_SECONDS = 1200  # of a timing job, by its own estimate: others wait behind it
MAX_TIMED_RUNS = 8  # kept for a visitor
SHAPE_CACHE_BYTES = 2 * 1024**3  # of models with random weights
FAMILY_CACHE_BYTES = 448 * 1024**2  # models of one width in every form of attention, 4 x 107 MB
LOOK_CACHE_BYTES = 64 * 1024**2
MAX_DRIFT_TOKENS = 128  # of a text that a trained model and its pooled copies read
MAX_GROWN_PROMPT = 16  # of a text whose every row is drawn while it grows
MIN_GROWN_TOKENS, MAX_GROWN_TOKENS = 2, 8
MAX_GROWN_BYTES = 256 * 1024**2
DRIFT_CACHE_BYTES = 16 * 1024**2
MIN_INSIDE_TOKENS, MAX_INSIDE_TOKENS = 2, 40  # new tokens whose cache is watched
MAX_INSIDE_PROMPT = 64
MAX_INSIDE_CONTINUATION = 32  # tokens typed behind a cropped cache
INSIDE_CACHE_BYTES = 96 * 1024**2
INSIDE_CROP_BYTES, INSIDE_FULL_BYTES = 80 * 1024**2, 80 * 1024**2
