"""What each page of the learning path shows: from the core's tensors to arrays and captions.

One module a page. They hold no mathematics of their own and import torch only inside functions.
"""
