"""Side-by-side measurements against peers, in one process and one run.

python -m benchmarks.decode     tokens a second: this core (cached, not, batched) and transformers
python -m benchmarks.decode_gpu the same on a GPU in bfloat16: recorded steps and transformers
python -m benchmarks.one_row    reading weights for one row: `project` against the plain products
python -m benchmarks.heads      all heads of a model in the browser, beside BertViz
python -m benchmarks.information_flow  the shares of all token pairs beside the recorded pass
python -m benchmarks.one_pass   the page One pass and Home: bytes, seconds and frames beside limits
"""
