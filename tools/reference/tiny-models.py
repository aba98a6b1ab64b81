"""
Tiny random-weight Llama models and what Hugging Face transformers answers for them.

    python tools/reference/tiny-models.py [NAME ...]

writes test/fixtures/tiny-NAME (a Hugging Face directory, or for `gguf` a single GGUF file) and test/goldens/tiny-NAME.json.
Seeds are fixed: the same versions of torch and tokenizers write the same bytes. Weights are scaled so that every part
matters: attention is peaked enough for RoPE to show, norm weights and biases are not trivial.

The golden always comes from the stored weights (f16 and bf16 storage included), read back and computed in float32.

RoPE types that depend on the sequence's length (dynamic, longrope): transformers changes the frequencies while a
sequence grows, and keys cached before keep the old ones. The engine fixes them when it admits a request, from prompt
length + new tokens (so that a token's bits never depend on when it was computed). The goldens do the same: the
frequencies of `ropeFinalLength` hold for every position of a prompt's golden.
"""

import json
import os
import shutil
import sys

import torch
from tiny_gguf import write_gguf
from tiny_tokenizer import write as write_tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from golden import judged_prompt, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
NEW_TOKENS = 30
ORIGINAL = 64


def base(**changes):
    """48 wide, 3 heads of 16 over one KV head, tied."""
    return {
        "vocab_size": 320,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    } | changes


def rope(rope_type, **parameters):
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": 10000.0, **parameters}}


def factors(first, last):
    return [round(first + (last - first) * i / 7, 4) for i in range(8)]


# name -> (configuration, storage type, other options)
VARIANTS = {
    "gqa": (base(), torch.float32, {}),
    "mha": (
        base(hidden_size=64, num_attention_heads=2, num_key_value_heads=2, head_dim=32, tie_word_embeddings=False),
        torch.bfloat16,
        {},
    ),
    "bias": (base(attention_bias=True, mlp_bias=True, num_key_value_heads=3), torch.float16, {}),
    # One head of 80 over 40 hidden dimensions a head, and a vocabulary that no tile divides.
    "wide-head": (
        base(vocab_size=323, hidden_size=80, num_attention_heads=2, head_dim=80, intermediate_size=72),
        torch.bfloat16,
        {},
    ),
    "linear": (base(**rope("linear", factor=4.0)), torch.float32, {"old_rope": True, "shard": "60KB"}),
    "dynamic": (
        base(max_position_embeddings=ORIGINAL, **rope("dynamic", factor=4.0)),
        torch.bfloat16,
        {},
    ),
    "yarn": (
        base(**rope("yarn", factor=4.0, original_max_position_embeddings=ORIGINAL, beta_fast=8.0, beta_slow=1.0)),
        torch.bfloat16,
        {},
    ),
    "llama3": (
        base(
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=ORIGINAL,
            )
        ),
        torch.bfloat16,
        {"old_rope": True},
    ),
    "longrope": (
        base(
            **rope(
                "longrope",
                short_factor=factors(1.0, 1.4),
                long_factor=factors(1.0, 6.0),
                original_max_position_embeddings=ORIGINAL,
            )
        ),
        torch.float16,
        {},
    ),
    # Mixed storage types, rows of q and k in llama.cpp's order.
    "gguf": (
        base(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96),
        torch.float32,
        {"gguf": True},
    ),
}


@torch.no_grad()
def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        values = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            parameter.copy_((2 if name == "model.norm.weight" else 1) * (1 + 0.2 * values))
        elif name.endswith("bias"):
            parameter.copy_(0.3 * values)
        elif "embed_tokens" in name or "lm_head" in name:
            parameter.copy_(0.2 * values)
        else:
            # Above 1: peaked attention, and layers that outweigh the embedding, which would otherwise be echoed.
            parameter.copy_(1.6 * values / parameter.shape[1] ** 0.5)


def use_old_rope(directory):
    """config.json as it was written before rope_parameters: rope_theta and rope_scaling."""
    path = f"{directory}/config.json"
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    config["rope_scaling"] = parameters
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def make(name, seed):
    """Writes the fixture; returns the model to be judged, in float32 from the stored weights."""
    config, storage, options = VARIANTS[name]
    directory = os.path.join(ROOT, "fixtures", f"tiny-{name}")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    model = LlamaForCausalLM(LlamaConfig(**config))
    randomise(model, seed)
    if options.get("gguf"):
        write_gguf(os.path.join(directory, "tiny-llama.gguf"), model)
        return model.eval()
    model.to(storage).save_pretrained(directory, max_shard_size=options.get("shard", "1GB"))
    os.remove(f"{directory}/generation_config.json")
    for file in os.listdir(directory):
        os.chmod(f"{directory}/{file}", 0o644)
    write_tokenizer(directory, config["vocab_size"])
    if options.get("old_rope"):
        use_old_rope(directory)
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()


def fix_rope(model, final_length):
    """Holds the frequencies of a sequence of final_length tokens, whatever the positions of a forward."""
    rotary = model.model.rotary_emb
    kind = model.config.rope_parameters["rope_type"]
    if kind not in ("dynamic", "longrope"):
        return
    frequencies, scale = ROPE_INIT_FUNCTIONS[kind](model.config, torch.device("cpu"), seq_len=final_length)
    rotary.rope_type = "fixed"
    rotary.inv_freq = frequencies
    rotary.attention_scaling = scale


def prompts(vocab_size):
    """Token prompts of 1, 2, 17, 100 and 160 tokens, and the positions whose full logits are kept."""
    generator = torch.Generator().manual_seed(7)
    positions = {1: [0], 2: [0, 1], 17: list(range(17)), 100: [0, 31, 32, 63, 64, 99], 160: [95, 127, 128, 159]}
    for length, kept in positions.items():
        yield torch.randint(3, vocab_size, (length,), generator=generator).tolist(), kept


def golden(name, model):
    items = []
    for ids, kept in prompts(model.config.vocab_size):
        fix_rope(model, len(ids) + NEW_TOKENS)
        items.append(judged_prompt(model, ids, kept, NEW_TOKENS))
    header = {"model": f"tiny-{name}", "madeBy": "tools/reference/tiny-models.py, float32, greedy, end_id ignored"}
    write_json(os.path.join(ROOT, "goldens", f"tiny-{name}.json"), header, "prompts", items)
    print(f"{name}: smallest gaps {[min(item['gaps']) for item in items]}, {items[2]['tokens'][:12]}")


def main():
    torch.set_num_threads(1)
    os.makedirs(os.path.join(ROOT, "goldens"), exist_ok=True)
    for index, name in enumerate(VARIANTS):
        if not sys.argv[1:] or name in sys.argv[1:]:
            golden(name, make(name, 1000 + index))


if __name__ == "__main__":
    main()
