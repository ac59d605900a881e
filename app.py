"""The frame of the site: the pages, their sections, and what every page shares.

They lie in `views/`: of a folder `pages/` Streamlit makes an older kind of app, whose links break.
"""

import os

import streamlit as st

from ui import contrast, footer, warmup

# GNU OpenMP reads this when torch is first imported, later. With its long spins at barriers, one
# other busy process makes generation on two cores 20 to 100 times slower; with short ones, twice.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

SECTIONS = {  # section -> (file, title, icon); the address of a page is its file's name
    "": [("views/start/home.py", "Attention Lab", "home")],
    "Learn": [
        ("views/learn/why_attention.py", "Why attention", "conversion_path"),
        ("views/learn/ladder.py", "Ladder", "stairs"),
        ("views/learn/shapes.py", "Shapes", "deployed_code"),
        ("views/learn/masking.py", "Masking and dropout", "visibility_off"),
        ("views/learn/scaling.py", "Scaling", "square_foot"),
        ("views/learn/against_pytorch.py", "Against PyTorch", "balance"),
        ("views/learn/block.py", "Block", "stacks"),
        ("views/learn/tokens.py", "Tokens", "match_word"),
    ],
    "Compare": [
        ("views/compare/heads.py", "Heads", "grid_on"),
        ("views/compare/side_by_side.py", "Side by side", "compare"),
        ("views/compare/ablate.py", "Ablate", "content_cut"),
        ("views/compare/word_pairs.py", "Word pairs", "link"),
        ("views/compare/generated_tokens.py", "Generated tokens", "history_edu"),
    ],
    "KV cache": [
        ("views/cache/what_is_recomputed.py", "What is recomputed", "replay"),
        ("views/cache/inside_the_cache.py", "Inside the cache", "memory"),
        ("views/cache/timing.py", "Timing", "timer"),
        ("views/cache/variants.py", "Variants", "account_tree"),
        ("views/cache/calculator.py", "Calculator", "calculate"),
    ],
    "Generate": [("views/generate/generate.py", "Generate", "bolt")],
    "Weights": [("views/models/models.py", "Models", "database")],
}


def page(file: str, title: str, icon: str) -> st.Page:
    """A page whose address is its file's name; home is the default."""
    path = file.rpartition("/")[2].removesuffix(".py").replace("_", "-")
    icon = f":material/{icon}:"
    return st.Page(file, title=title, icon=icon, url_path=path, default=path == "home")


st.set_page_config(page_title="Attention Lab", page_icon="ui/favicon.png", layout="wide")
PAGES = {section: [page(*entry) for entry in entries] for section, entries in SECTIONS.items()}
current = st.navigation(PAGES)
warmup.start()
contrast.apply()
current.run()
footer.next_lesson(PAGES["Learn"], current)
