"""Benchmarks that compare this project with others, interleaved in one process.

python -m benchmarks.decode     tokens per second: core (cached, uncached, batched), transformers
python -m benchmarks.decode_gpu the same on a GPU in bfloat16: recorded steps, transformers
python -m benchmarks.one_row    read rate of the weights for one row: our product and PyTorch's
python -m benchmarks.kv_cache   time saved by the KV cache, by length
python -m benchmarks.heads      all heads of a model in the browser, compared with BertViz
python -m benchmarks.information_flow  the shares of all token pairs, compared with the pass
python -m benchmarks.one_pass   the pages One pass and Home: bytes, seconds and frames
python -m benchmarks.load       many visitors at the same time
"""
