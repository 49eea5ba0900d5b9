"""A tiny language model made on the spot: nothing to download, trained and served like any other.

A byte-level BPE tokenizer learns its words from the texts given; the weights are drawn at random.
Such a model knows nothing: a warm-up has to teach it the form of an idea first.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from mle_ideator.errors import UsageError
from mle_ideator.idea_form import PARTS

END = "<|end|>"
PAD = "<|pad|>"
_ROLES = ("system", "user", "assistant")
_TAGS = [f"<{slash}{part}>" for part in PARTS for slash in ("", "/")]
_TAG = re.compile("|".join(_TAGS))
_BYTES = 256
_TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'system' %}<|system|>"
    "{% elif message.role == 'user' %}<|user|>{% else %}<|assistant|>{% endif %}"
    "{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_tiny(
    folder: Path,
    texts: Iterable[str],
    *,
    vocab: int = 1024,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 4,
    context: int = 1024,
    seed: int = 0,
) -> Path:
    """Write a new model into a folder, which appears whole or not at all; `hf:FOLDER` serves it.

    `texts` are prompts and ideas, from which the tokenizer learns. The same arguments make the same
    model. Raises `UsageError` if the sizes do not fit each other or the folder is there already.
    """
    _check(folder, vocab=vocab, hidden=hidden, heads=heads)
    tokenizer = _tokenizer(texts, vocab, context)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(_shape(tokenizer, hidden, layers, heads, context))
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    disable_progress_bar()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as part:
        whole = Path(part, "model")
        model.save_pretrained(whole)
        tokenizer.save_pretrained(whole)
        whole.rename(folder)
    return folder


def _check(folder: Path, *, vocab: int, hidden: int, heads: int) -> None:
    if folder.exists():
        raise UsageError(f"{folder} is there already; name another folder.")
    least = _BYTES + len(_TAGS) + len(_ROLES) + 2
    if vocab < least:
        raise UsageError(f"a vocabulary of {vocab} is too small: {least} is the least.")
    if hidden % (2 * heads):
        raise UsageError(f"the width {hidden} can not be divided among {heads} heads, by pairs.")


def _tokenizer(texts: Iterable[str], vocab: int, context: int) -> Any:
    """Tags are one token each, but text: they stay when special tokens are left out."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            # Of a number each digit is read; words are what is left for the vocabulary.
            pre_tokenizers.Split(Regex(r"\d"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    special = [PAD, END, *(f"<|{role}|>" for role in _ROLES)]
    bpe.train_from_iterator(
        (_TAG.sub("\n", text) for text in texts),
        trainers.BpeTrainer(
            vocab_size=vocab - len(_TAGS),
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    bpe.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in _TAGS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=special[2:],
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def _shape(tokenizer: Any, hidden: int, layers: int, heads: int, context: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        # The usual 0.02 is for wide models; so narrow a one begins to learn much later with it.
        initializer_range=0.7 / hidden**0.5,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
