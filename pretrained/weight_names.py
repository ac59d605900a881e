"""Names of a layer's weights in our core, and in checkpoints of transformers.

`pretrained.weights` reads checkpoints with these names, and `pretrained.export` writes them.
"""

# GPT-2: each has a weight and a bias
GPT2_LAYER = {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "mlp_norm": "ln_2",
    "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj",
}

# BERT and Llama: each matrix in the core consists of one or more of their matrices
BERT_NORMS = {"attention_norm": "attention.output.LayerNorm", "mlp_norm": "output.LayerNorm"}
BERT_MATRICES = {
    "attention.qkv": tuple(f"attention.self.{name}" for name in ("query", "key", "value")),
    "attention.out": ("attention.output.dense",),
    "mlp.up": ("intermediate.dense",),
    "mlp.down": ("output.dense",),
}
LLAMA_NORMS = {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
LLAMA_MATRICES = {
    "attention.qkv": tuple(f"self_attn.{name}_proj" for name in ("q", "k", "v")),
    "attention.out": ("self_attn.o_proj",),
    "mlp.up": ("mlp.up_proj",),
    "mlp.gate": ("mlp.gate_proj",),
    "mlp.down": ("mlp.down_proj",),
}
