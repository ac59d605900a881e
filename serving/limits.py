"""What one visitor may ask for, so that a shared host stays usable for all.

Tokens are those of a model's tokenizer, bytes are those of memory.
"""

from __future__ import annotations

MIB, GIB = 1024**2, 1024**3

# ---- what is typed

MAX_TEXT_CHARACTERS = 5_000  # the text is part of the page's address
MAX_TOKENIZER_CHARACTERS = 400  # of the page that shows every token three times
MAX_WORDS = 64  # of a sentence that is differentiated live
MAX_SWITCHED_CHARACTERS = 200  # names of heads and other parts of a model
MAX_QR_CHARACTERS = 1_000  # of a link as a QR code: a phone reads it from a screen
MAX_SEED = 99_999  # five digits are enough to choose from
MAX_MATRIX_ROWS, MAX_MATRIX_COLUMNS = 12, 8  # of the table that a visitor fills: it fits a screen
MAX_MATRIX_VALUE = 100  # of its numbers: larger ones make every softmax a 0 or a 1

# ---- visitors beside each other

# A dragged slider sends some twenty messages a second for a moment; a storm sends thousands.
MESSAGES_A_SECOND, BURST_OF_MESSAGES = 10, 60  # of one open page
MESSAGES_A_SECOND_OF_AN_ADDRESS, BURST_OF_AN_ADDRESS = 300, 3_000  # of all its pages, new ones too
FILES_A_SECOND, BURST_OF_FILES = 0.5, 6  # made on a click on one open page; some take seconds
FILES_A_SECOND_OF_AN_ADDRESS, BURST_OF_FILES_OF_AN_ADDRESS = 2, 40
FILES_AT_ONCE = 32  # that are made, or wait for others of their kind
MAX_SESSIONS_OF_AN_ADDRESS = 300  # open pages: a school may share one address
# A message holds the address, with texts of up to five thousand characters, which in some scripts
# take 45 kB each there, all controls of the page and the names of what the browser keeps.
MAX_MESSAGE_BYTES = 512 * 1024  # of a browser
MAX_WIDGETS = 300  # of a message: a page has up to fifty
MAX_SENT_BYTES = 200_000_000  # of a message to a browser, which is Streamlit's own limit

# torch releases Python's interpreter during every operation of a model and then waits for it, up
# to this long for each thread that is busy with another visitor's page. Next to one busy thread, a
# pass of GPT-2's shape took 13 times as long as alone with Python's default of 5 ms. With this
# value it took 3 times as long.
SWITCH_SECONDS = 0.0001

# So many objects are made and kept before Python looks for unused ones that refer to each other.
# With its own 700 that took a tenth of a site's processor time with fifty visitors, now a third of
# that, and every few seconds all of them waited 0.2 s for the largest look. Memory is the same.
OBJECTS_BEFORE_COLLECTION = 5_000

# ---- tokens of a text: a picture grows with their square

MAX_MAP_TOKENS = 256  # of a map of every head: 71 MB of weights for SmolLM2
MAX_LESSON_TOKENS = 128  # of lessons that draw more than a map of each head
MAX_ONE_PASS_TOKENS = 64  # of the picture of a whole pass: 1.5 MB
MAX_SEVERAL_HEADS_TOKENS = 64  # of a text that is run again with each head of a layer off
MAX_DRIFT_TOKENS = 128  # read by a trained model and by all of its pooled copies
MAX_SMALL_TOKENS = 12  # of sentences whose every number is drawn
MAX_TRAINED_TOKENS, MAX_TRAINING_STEPS = 48, 5  # of gradient descent on a text: 1.5 s a step
MAX_TILED_TOKENS = 64  # of a matrix that is drawn tile by tile
MAX_SHEET_TOKENS = 40  # of the sentence of an exercise sheet: it fits the paper
MAX_SINK_TOKENS = 32  # of a text that is run again with other beginnings
MAX_CHEAPER_TOKENS = 48  # of a text whose logits are read at many depths and places

# ---- tokens of a prompt, and new ones behind it: each new one is a pass

MAX_PROMPT_TOKENS, MAX_NEW_TOKENS = 512, 200  # of Generate: a minute on two cores
MAX_TRACED_PROMPT = 96  # whose attention is kept and drawn for every step
MIN_TRACED_TOKENS, MAX_TRACED_TOKENS = 2, 40  # new tokens of that
MAX_GROWN_PROMPT = 16  # of a text whose every row is drawn while it grows
MIN_GROWN_TOKENS, MAX_GROWN_TOKENS = 2, 8  # new tokens of that
MAX_INSIDE_PROMPT = 64  # whose KV cache is watched
MIN_INSIDE_TOKENS, MAX_INSIDE_TOKENS = 2, 40  # new tokens of that
MAX_INSIDE_CONTINUATION = 32  # tokens typed behind a cropped cache
MAX_CONTINUATIONS, MAX_CONTINUED_TOKENS = 8, 16  # of a text, sampled at once and rewarded
MAX_DRAFTED_TOKENS = 6  # by the first layers of a model, a pass each
MAX_RULE_CHARACTERS = 40  # of a word that a continuation is asked to have

# ---- long work: others wait behind it

MAX_WAITING_JOBS = 8  # of a queue: whoever comes later would wait for many minutes
MAX_WAITING_OF_A_VISITOR = 2  # of those, from all tabs of one browser
MAX_WAITING_OF_AN_ADDRESS = 6  # of all of them: whoever makes cookies up leaves room for others
STUCK_SECONDS = 120  # of one slot, or of a job that was told to end: then the site is not ready
MAX_TIMED_TOKENS, MAX_TIMED_REPEATS = 512, 5  # new tokens of Timing, each generation run anew
MAX_TIMED_SECONDS = 1200  # of one timing job, by its own estimate
MAX_FORMING_STEPS = 600  # of training two small attention layers: 15 seconds of one core
MAX_TIMED_RUNS = 8  # results that are kept for a visitor

# ---- waiting for a compute slot

LONGEST_WAIT_SECONDS = 60.0
SILENT_WAIT_SECONDS = 1.0  # of those, before the visitor is told

# ---- a model server: requests and answers

MAX_REQUEST_BYTES = 64 * 1024  # a text of five thousand characters, and settings
MAX_CONCURRENT_REQUESTS = 32  # each has a thread
MAX_EVENT_BYTES = 1 * MIB  # of an answer, without tensors
MAX_TENSOR_BYTES = 1 * GIB  # of an event; a recorded pass may take 119 MB

# ---- memory of files made on a click, in bytes

KEPT_FILE_BYTES = 256 * MIB  # which browsers may still be fetching

# ---- memory of models and of cached values, in bytes: `serving.cache`

MAX_MODEL_BYTES = 8 * GIB  # of a trained model; less where the memory is small
MAX_TRAINED_COPY_BYTES = 1 * GIB  # of a copy of a model and its largest gradients
MAX_GROWN_BYTES = 256 * MIB  # of one growing text whose every row is drawn
TEXTS_BYTES = 320 * MIB  # what texts leave behind; a run takes up to 119 MB, a growing text more


class InvalidInput(ValueError):
    """An input that nothing can be done with: no error of the site. The message says what to do."""


class OverLimit(InvalidInput):
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
