"""What each page about the KV cache shows: from formulas and runs to numbers and pictures.

One module or package a page. They hold no mathematics of their own and import torch only inside
functions.
"""
