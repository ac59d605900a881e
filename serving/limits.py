"""Limits on what one visitor may use, so that a shared site stays responsive.

Tokens are tokens of the model's own tokenizer. Bytes are bytes of memory.
"""

from __future__ import annotations

MIB, GIB = 1024**2, 1024**3

# ---- visitors' input

MAX_TEXT_CHARACTERS = 5_000  # the text is part of the page's URL
MAX_TOKENIZER_CHARACTERS = 400  # for the page that shows every token three times
MAX_WORDS = 64  # in a sentence for which we compute derivatives live
MAX_DISABLED_CHARACTERS = 200  # names of heads and other parts that are switched off
MAX_QR_CHARACTERS = 1_000  # so that a phone can scan the QR code on a screen
MAX_SEED = 99_999
MAX_MATRIX_ROWS, MAX_MATRIX_COLUMNS = 12, 8  # the editable table must fit on a screen
MAX_MATRIX_VALUE = 100  # larger values make every softmax weight 0 or 1

# ---- connections and messages

# Dragging a slider briefly sends about twenty messages a second; a flood has thousands.
MESSAGES_PER_SECOND, MESSAGE_BURST = 10, 60  # per open page
ADDRESS_MESSAGES_PER_SECOND, ADDRESS_MESSAGE_BURST = 300, 3_000  # all pages from one address
FILES_PER_SECOND, FILE_BURST = 0.5, 6  # downloads per open page; some take seconds to create
ADDRESS_FILES_PER_SECOND, ADDRESS_FILE_BURST = 2, 40
MAX_CONCURRENT_FILES = 32  # downloads being created or waiting
MAX_SESSIONS_PER_ADDRESS = 300  # open pages: a school may share one address
# A message contains the URL, the values of all widgets and the names of all messages that the
# browser has cached. A text of 5,000 characters may take 45 kB in the URL.
MAX_MESSAGE_BYTES = 512 * 1024  # from a browser
MAX_WIDGETS = 300  # per message: a page has up to fifty
MAX_SENT_BYTES = 200_000_000  # per message to a browser; Streamlit's own default

# torch releases the GIL during every operation of a model and then has to wait to get it back, up
# to this long for each thread that is busy with another visitor's page. With Python's default of 5
# ms and one busy thread, a forward pass of GPT-2's size took 13 times as long as alone. With this
# value it took 3 times as long.
SWITCH_SECONDS = 0.0001

# Python's garbage collector runs after this number of new objects. With the default of 700, it took
# 10% of the CPU time with fifty visitors, and every few seconds a full collection blocked everyone
# for 0.2 s. With this value it takes a third of that, and no more memory.
GC_THRESHOLD = 5_000

# ---- tokens of a text: pictures grow with the square of this number

MAX_MAP_TOKENS = 256  # for a map of every head: 71 MB of weights for SmolLM2
MAX_LESSON_TOKENS = 128  # for lessons that draw more than a map per head
MAX_ONE_PASS_TOKENS = 64  # for the picture of a whole pass: 1.5 MB
MAX_SEVERAL_HEADS_TOKENS = 64  # for a text that is rerun with each head of a layer off
MAX_DRIFT_TOKENS = 128  # for a text that a trained model and all its pooled copies read
MAX_SMALL_TOKENS = 12  # for sentences for which we draw every number
MAX_TRAINED_TOKENS, MAX_TRAINING_STEPS = 48, 5  # for gradient descent on a text: 1.5 s per step
MAX_TILED_TOKENS = 64  # for a matrix that is drawn tile by tile
MAX_SHEET_TOKENS = 40  # for the sentence on an exercise sheet, which must fit on paper
MAX_SINK_TOKENS = 32  # for a text that is rerun with different first tokens
MAX_CHEAPER_TOKENS = 48  # for a text whose logits are computed at many layers and positions

# ---- tokens of a prompt, and new tokens, each of which needs a forward pass

MAX_PROMPT_TOKENS, MAX_NEW_TOKENS = 512, 200  # for Generate: a minute on two cores
MAX_TRACED_PROMPT = 96  # if we draw the attention of every step
MIN_TRACED_TOKENS, MAX_TRACED_TOKENS = 2, 40  # new tokens after it
MAX_GROWN_PROMPT = 16  # if we draw every row of the growing text
MIN_GROWN_TOKENS, MAX_GROWN_TOKENS = 2, 8  # new tokens after it
MAX_INSIDE_PROMPT = 64  # if we show the contents of the KV cache
MIN_INSIDE_TOKENS, MAX_INSIDE_TOKENS = 2, 40  # new tokens after it
MAX_INSIDE_CONTINUATION = 32  # tokens that a visitor appends to a cropped cache
MAX_CONTINUATIONS, MAX_CONTINUED_TOKENS = 8, 16  # sampled in a batch and rewarded
MAX_DRAFTED_TOKENS = 6  # drafted by the first layers of a model, with a pass for each
MAX_RULE_CHARACTERS = 40  # for a word that a continuation should contain

# ---- jobs, which make other visitors wait

MAX_WAITING_JOBS = 8  # per queue: with more, the last one would wait for many minutes
MAX_WAITING_PER_VISITOR = 2  # from all tabs of a browser
MAX_WAITING_PER_ADDRESS = 6  # leaves space for others even if a client fakes its cookies
STUCK_SECONDS = 120  # the site isn't ready if a slot or a stopped job takes longer than this
MAX_TIMED_TOKENS, MAX_TIMED_REPEATS = 512, 5  # new tokens and repeats on the page Timing
MAX_TIMED_SECONDS = 1200  # estimated duration of a timing job
MAX_FORMING_STEPS = 600  # for training two small attention layers: 15 seconds on one core
MAX_TIMED_RUNS = 8  # results stored per visitor

# ---- waiting for a compute slot

LONGEST_WAIT_SECONDS = 60.0
SILENT_WAIT_SECONDS = 1.0  # after this, the visitor sees a message

# ---- requests to a model server, and its responses

MAX_REQUEST_BYTES = 64 * 1024  # enough for a text of 5,000 characters and settings
MAX_CONCURRENT_REQUESTS = 32  # each has a thread
MAX_EVENT_BYTES = 1 * MIB  # without tensors
MAX_TENSOR_BYTES = 1 * GIB  # per event; a recorded pass may take 119 MB

# ---- bytes of memory for downloads

RETAINED_FILE_BYTES = 256 * MIB  # for files that browsers may still be fetching

# ---- bytes of memory for models and cached values (`serving.cache`)

MAX_MODEL_BYTES = 8 * GIB  # for a trained model; less if the machine has little memory
MAX_TRAINED_COPY_BYTES = 1 * GIB  # for a copy of a model with its largest gradients
MAX_GROWN_BYTES = 256 * MIB  # for a growing text for which we draw every row
TEXTS_BYTES = 320 * MIB  # for results from texts; a run takes up to 119 MB, a growing text more


class InvalidInput(ValueError):
    """An input that can't be used. It's not an error of the site; the message says what to do."""


class OverLimit(InvalidInput):
    """An input that exceeds a limit; the message says by how much and what to do."""


def check_text(text: str) -> None:
    """Raise OverLimit if a text is too long to be tokenized."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise OverLimit(
            f"The text has {len(text):,} characters, {len(text) - MAX_TEXT_CHARACTERS:,} over the "
            f"limit of {MAX_TEXT_CHARACTERS:,}. Shorten it; your text is still in the box."
        )


def check_tokens(n_tokens: int, limit: int, purpose: str) -> None:
    """Raise OverLimit if a text has too many tokens for `purpose` (for example "a head map")."""
    if n_tokens > limit:
        raise OverLimit(
            f"The text is {n_tokens} tokens long, {n_tokens - limit} over the limit of {limit} "
            f"for {purpose}. Shorten it; your text is still in the box."
        )
