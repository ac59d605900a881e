"""An encoder and a decoder with cross-attention, built from the core's modules.

Dimension letters: B batch, T generated symbols, S symbols in the text, H heads,
D head size, C width.
Sources: Bahdanau et al. 2014 (https://arxiv.org/abs/1409.0473), where a decoder first looked
back at every state of the encoder; Vaswani et al. 2017 (https://arxiv.org/abs/1706.03762).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.attention import MultiHeadAttention
from attention_core.masks import causal_mask, padding_mask
from attention_core.model.layers import Projection
from pages.learn.two_networks.experiment.dates import ANSWER, MAX_TEXT, PAD, START, VOCABULARY

WEIGHTS = Path(__file__).parent / "dates.safetensors"


@dataclass(frozen=True)
class Translation:
    """The translator's output for a batch of texts and the symbols generated so far.

    `encoder` and `decoder` are self-attention, `cross` is cross-attention from the generated
    symbols to the text: one record per layer, weights (B, H, S, S), (B, H, T, T) and (B, H, T, S).
    """

    logits: Tensor  # (B, T, vocabulary)
    encoder: list[AttentionRecord]
    decoder: list[AttentionRecord]
    cross: list[AttentionRecord]


class EncoderDecoderLayer(nn.Module):
    """One layer of the encoder, or of the decoder if `cross` is set; norms come first."""

    def __init__(self, width: int, n_heads: int, *, cross: bool) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = MultiHeadAttention(width, n_heads)
        self.cross_norm = nn.LayerNorm(width) if cross else None
        self.cross_attention = MultiHeadAttention(width, n_heads) if cross else None
        self.feed_norm = nn.LayerNorm(width)
        self.up, self.down = Projection(width, 2 * width), Projection(2 * width, width)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> tuple[Tensor, list[AttentionRecord]]:
        """Run the layer: (B, T, C) -> (B, T, C), plus the records of its attentions."""
        records = [self.self_attention.record(self.self_norm(x), mask=mask)]  # [self attention]
        x = x + records[0].added
        if self.cross_attention is not None and self.cross_norm is not None:
            if memory is None:
                raise ValueError("a layer with cross-attention needs the encoder's output")
            options = {"memory": memory, "mask": memory_mask}
            # [cross attention]
            records.append(self.cross_attention.record(self.cross_norm(x), **options))
            x = x + records[1].added
        return x + self.down(torch.relu(self.up(self.feed_norm(x)))), records


class Translator(nn.Module):
    """Read a text with an encoder, and generate an answer with a decoder, symbol by symbol."""

    def __init__(self, width: int = 64, n_heads: int = 4, n_layers: int = 2) -> None:
        super().__init__()
        self.symbols = nn.Embedding(VOCABULARY, width)
        self.text_positions = nn.Embedding(MAX_TEXT, width)
        self.answer_positions = nn.Embedding(ANSWER, width)
        self.encoder = nn.ModuleList(
            EncoderDecoderLayer(width, n_heads, cross=False) for _ in range(n_layers)
        )
        self.decoder = nn.ModuleList(
            EncoderDecoderLayer(width, n_heads, cross=True) for _ in range(n_layers)
        )
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.unembed = Projection(width, VOCABULARY)

    def encode(self, text: Tensor) -> tuple[Tensor, list[AttentionRecord]]:
        """Encode a text (B, S) into one state per symbol (B, S, C).

        Also returns the self-attention of each encoder layer.
        Raises: ValueError for a text without symbols or with more than 32.
        """
        n_text = text.shape[1]
        if not 1 <= n_text <= MAX_TEXT:
            raise ValueError(f"a text must have 1 to {MAX_TEXT} symbols, got {n_text}")
        mask = padding_mask(text != PAD)  # (B, 1, 1, S)
        records = []
        x = self.symbols(text) + self.text_positions.weight[:n_text]  # (B, S, C)
        for layer in self.encoder:
            x, (record,) = layer(x, mask)
            records.append(record)
        return self.encoder_norm(x), records

    def forward(self, text: Tensor, prefix: Tensor, *, one_vector: bool = False) -> Translation:
        """Compute logits for the symbol after each generated one: text (B, S), written (B, T).

        one_vector: the decoder gets only the mean of the encoder's states, so `cross` has a single
        key. The weights weren't trained for that.
        Raises: ValueError for a text with more than 32 symbols or an answer with more than 10.
        """
        n_written = prefix.shape[1]
        if not 1 <= n_written <= ANSWER:
            raise ValueError(f"an answer must have 1 to {ANSWER} symbols, got {n_written}")
        memory, encoder = self.encode(text)
        is_text = text != PAD
        mask = padding_mask(is_text)  # (B, 1, 1, S)
        if one_vector:
            memory = (memory * is_text[..., None]).sum(1, keepdim=True)  # [summed states] (B, 1, C)
            memory = memory / is_text.sum(1)[:, None, None]  # [mean state]
            mask = mask.any(-1, keepdim=True)
        decoder, cross = [], []
        y = self.symbols(prefix) + self.answer_positions.weight[:n_written]  # (B, T, C)
        causal = causal_mask(n_written, n_written, device=text.device)
        for layer in self.decoder:
            y, (record, between) = layer(y, causal, memory, mask)
            decoder.append(record)
            cross.append(between)
        return Translation(self.unembed(self.decoder_norm(y)), encoder, decoder, cross)

    @torch.no_grad()
    def translate(self, text: Tensor, *, one_vector: bool = False) -> tuple[Tensor, Translation]:
        """Generate the most probable symbols: text (B, S) -> answers (B, 10), and the last pass."""
        written = torch.full((text.shape[0], 1), START, device=text.device)
        while True:
            result = self(text, written, one_vector=one_vector)
            # never generate padding or a second start symbol
            chosen = result.logits[:, -1, START + 1 :].argmax(-1, keepdim=True) + START + 1
            written = torch.cat((written, chosen), dim=1)
            if written.shape[1] > ANSWER:
                return written[:, 1:], result


def trained_translator() -> Translator:
    """Load the translator with the weights saved by `python -m training.translator`."""
    from safetensors.torch import load_file

    with torch.device("meta"):  # don't initialize weights that are replaced anyway
        model = Translator()
    model.load_state_dict(load_file(WEIGHTS), assign=True)
    return model.eval().requires_grad_(False)
