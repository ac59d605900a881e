"""What each page of the Compare section shows: from runs and records to arrays and pictures.

One module a page, or a package where a page has several ideas: then one module an idea. They hold
no mathematics of their own and import torch only inside functions.
"""
