"""
A tiny OpenELM for families.py. Its own code is not transformers': its layers are those of Qwen3 with other heads and widths in each, whose
queries, keys and values are one tensor, gate and up another.
"""

import copy

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

WIDTH, HEAD, HEADS, KV_HEADS, MULTIPLIERS = 32, 8, [4, 6, 8], [2, 3, 2], [0.5, 1.25, 2.0]
FIELDS = {
    "architectures": ["OpenELMForCausalLM"],
    "model_type": "openelm",
    "vocab_size": 128,
    "model_dim": WIDTH,
    "head_dim": HEAD,
    "num_transformer_layers": 3,
    "num_query_heads": HEADS,
    "num_kv_heads": KV_HEADS,
    "ffn_multipliers": MULTIPLIERS,
    "ffn_dim_divisor": 16,
    "ffn_with_glu": True,
    "activation_fn_name": "swish",
    "normalization_layer_name": "rms_norm",
    "normalize_qk_projections": True,
    "share_input_output_layers": True,
    "max_context_length": 256,
    "rope_max_length": 512,
    "rope_freq_constant": 10000,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def widths():
    """As the published make_divisible: 16, 48 for 40, and 64."""
    made = []
    for multiplier in MULTIPLIERS:
        value = multiplier * WIDTH
        nearest = max(16, int(value + 8) // 16 * 16)
        made.append(nearest + 16 if nearest < 0.9 * value else nearest)
    return made


def tensors():
    """Names and shapes as in the published files."""
    shapes = {"transformer.token_embeddings.weight": [128, WIDTH], "transformer.norm.weight": [WIDTH]}
    for layer, (heads, kv_heads, width) in enumerate(zip(HEADS, KV_HEADS, widths())):
        own = f"transformer.layers.{layer}."
        shapes |= {
            own + "attn_norm.weight": [WIDTH],
            own + "ffn_norm.weight": [WIDTH],
            own + "attn.qkv_proj.weight": [(heads + 2 * kv_heads) * HEAD, WIDTH],
            own + "attn.q_norm.weight": [HEAD],
            own + "attn.k_norm.weight": [HEAD],
            own + "attn.out_proj.weight": [WIDTH, heads * HEAD],
            own + "ffn.proj_1.weight": [2 * width, WIDTH],
            own + "ffn.proj_2.weight": [WIDTH, width],
        }
    return shapes


def make(values):
    config = Qwen3Config(
        vocab_size=128,
        hidden_size=WIDTH,
        head_dim=HEAD,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=16,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    model = Qwen3ForCausalLM(config)
    named = {"model.embed_tokens.weight": "transformer.token_embeddings.weight", "model.norm.weight": "transformer.norm.weight"}
    state = {own: torch.from_numpy(values[name]) for own, name in named.items()}
    for layer, (heads, kv_heads, width) in enumerate(zip(HEADS, KV_HEADS, widths())):
        of_layer = copy.deepcopy(config)
        of_layer.num_attention_heads, of_layer.num_key_value_heads, of_layer.intermediate_size = heads, kv_heads, width
        model.model.layers[layer] = Qwen3DecoderLayer(of_layer, layer)
        get = lambda name: torch.from_numpy(values[f"transformer.layers.{layer}.{name}.weight"])
        q, k, v = get("attn.qkv_proj").split([heads * HEAD, kv_heads * HEAD, kv_heads * HEAD])
        gate, up = get("ffn.proj_1").chunk(2)
        parts = {
            "input_layernorm": get("attn_norm"),
            "post_attention_layernorm": get("ffn_norm"),
            "self_attn.q_proj": q,
            "self_attn.k_proj": k,
            "self_attn.v_proj": v,
            "self_attn.q_norm": get("attn.q_norm"),
            "self_attn.k_norm": get("attn.k_norm"),
            "self_attn.o_proj": get("attn.out_proj"),
            "mlp.gate_proj": gate,
            "mlp.up_proj": up,
            "mlp.down_proj": get("ffn.proj_2"),
        }
        state |= {f"model.layers.{layer}.{name}.weight": value for name, value in parts.items()}
    missing = model.load_state_dict(state, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys, missing
    return model.eval()
