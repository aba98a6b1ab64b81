"""A tiny Llama as one GGUF file with its tokenizer in the metadata, laid out as llama.cpp's converter does it."""

import json

import gguf
import numpy as np
import torch
from tiny_tokenizer import CHAT_TEMPLATE, SPECIALS, train

Q = gguf.GGMLQuantizationType

# Storage type of each tensor, so that one small file holds most of what a reader meets.
TYPES = {
    "embed_tokens": Q.Q8_0,
    "q_proj": Q.Q8_0,
    "k_proj": Q.F16,
    "v_proj": Q.BF16,
    "o_proj": Q.Q4_0,
    "gate_proj": Q.Q4_1,
    "up_proj": Q.Q8_0,
    "down_proj": Q.F32,
}

NAMES = {
    "embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}


def gguf_name(name):
    """model.layers.3.self_attn.q_proj.weight -> blk.3.attn_q.weight"""
    key = next(short for short in NAMES if f"{short}.weight" in name)
    prefix = f"blk.{name.split('.')[2]}." if ".layers." in name else ""
    return f"{prefix}{NAMES[key]}.weight"


def interleave(weight, heads):
    """Rows of each head from Hugging Face's order (i, i + half) to llama.cpp's (2i, 2i + 1)."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def add_metadata(writer, config):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    add_tokenizer(writer, config)


def add_tokenizer(writer, config):
    model = json.loads(train(config.vocab_size).to_str())["model"]
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in SPECIALS else normal for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_pad_token_id(config.pad_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


@torch.no_grad()
def write_gguf(path, model):
    """Writes the file, and puts into `model` the weights as they are after quantisation."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    add_metadata(writer, config)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, parameter in model.named_parameters():
        kind = next((TYPES[short] for short in TYPES if short in name), Q.F32)
        stored = gguf.quants.quantize(parameter.numpy(), kind)
        parameter.copy_(torch.from_numpy(np.array(gguf.quants.dequantize(stored, kind))))
        interleaved = next((heads[short] for short in heads if short in name), 0)
        if interleaved:
            # A row is quantised on its own, so quantising the moved rows gives the same blocks.
            stored = gguf.quants.quantize(interleave(parameter.numpy(), interleaved), kind)
        writer.add_tensor(gguf_name(name), stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
