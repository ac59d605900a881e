"""What each page of the learning path shows: from the core's tensors to arrays and captions.

One module a page, or a package where a page has several ideas: then one module an idea. They hold
no mathematics of their own and import torch only inside functions.
"""
