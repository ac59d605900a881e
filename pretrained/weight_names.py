"""What the weights of a layer are called: in this core, and in the checkpoints of others.

`pretrained.weights` reads checkpoints by these names, `pretrained.export` writes them.
"""

# GPT-2: each has a weight and a bias, stored as the core stores them
GPT2_LAYER = {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "mlp_norm": "ln_2",
    "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj",
}

# BERT and Llama: a matrix of the core is one or several of theirs, transposed, side by side
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
