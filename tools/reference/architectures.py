"""
A tiny random-weight model of each architecture other than Llama's, and what Hugging Face transformers answers for it.

    python tools/reference/architectures.py [NAME ...]

writes test/fixtures/tiny-NAME (a Hugging Face directory, weights in bf16) and test/goldens/tiny-NAME.json: float32 from the
stored weights, greedy, end_id ignored. Prompts go beyond the models' windows. Where RoPE depends on a sequence's length it is
that of `ropeFinalLength`, as in tiny-models.py.
"""

import importlib
import os
import shutil
import sys

import torch
import transformers
from tiny_tokenizer import write as write_tokenizer

from golden import judged_prompt, write_json

tiny_models = importlib.import_module("tiny-models")
ROOT = tiny_models.ROOT
NEW_TOKENS = 24
VOCABULARY = 272
WINDOW = 20


def common(**changes):
    """48 wide, 4 heads of 16 over 2 KV heads."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    } | changes


def factors(first, last, count):
    return [round(first + (last - first) * i / (count - 1), 4) for i in range(count)]


# name -> (configuration class, model class, configuration)
MODELS = {
    "mistral": ("MistralConfig", "MistralForCausalLM", common(sliding_window=WINDOW, head_dim=16)),
    "qwen2": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        common(
            num_hidden_layers=3,
            tie_word_embeddings=True,
            use_sliding_window=True,
            sliding_window=WINDOW,
            max_window_layers=1,
        ),
    ),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", common(head_dim=24)),
    "phi3": (
        "Phi3Config",
        "Phi3ForCausalLM",
        common(
            hidden_size=64,
            sliding_window=48,
            original_max_position_embeddings=64,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.75,
                "short_factor": factors(1.0, 1.4, 6),
                "long_factor": factors(1.0, 6.0, 6),
                "original_max_position_embeddings": 64,
            },
        ),
    ),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        common(
            num_hidden_layers=3,
            head_dim=16,
            query_pre_attn_scalar=10,
            sliding_window=WINDOW,
            attn_logit_softcapping=4.0,
            final_logit_softcapping=6.0,
        ),
    ),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        common(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=6,
            num_key_value_heads=1,
            head_dim=16,
            query_pre_attn_scalar=12,
            sliding_window=WINDOW,
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 100000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
            },
        ),
    ),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 48,
            "n_head": 4,
            "n_layer": 2,
            "n_positions": 160,
            "n_ctx": 160,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
    ),
    "qwen3moe": (
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        common(
            hidden_size=64,
            intermediate_size=96,
            head_dim=24,
            num_experts=8,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            norm_topk_prob=True,
        ),
    ),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        common(
            hidden_size=64,
            intermediate_size=32,
            head_dim=16,
            num_local_experts=8,
            num_experts_per_tok=2,
            sliding_window=WINDOW,
        ),
    ),
    # Shares that do not add up to 1.
    "qwen3moe-shares": (
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        common(
            hidden_size=64,
            intermediate_size=96,
            head_dim=16,
            num_experts=12,
            num_experts_per_tok=3,
            moe_intermediate_size=32,
            norm_topk_prob=False,
        ),
    ),
}
# Seeds of models with experts, at which no token has two scores of experts so close that rounding decides between them.
SEEDS = {"qwen3moe": 3043, "mixtral": 3034, "qwen3moe-shares": 3056}


@torch.no_grad()
def randomise(model, seed):
    """As in tiny-models.py: peaked attention, and nothing trivial."""
    generator = torch.Generator().manual_seed(seed)
    gemma = type(model).__name__.startswith("Gemma")
    for name, parameter in sorted(model.named_parameters()):
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            parameter.copy_((0.1 if "ln_" in name else 0.3) * values)
        elif "norm" in name or ".ln_" in name:
            size = 2 if "model.norm" in name or "ln_f" in name else 1.6 if "q_norm" in name or "k_norm" in name else 1
            # Gemma's norms multiply by 1 + weight.
            parameter.copy_(size * (1 + 0.2 * values) - (1 if gemma else 0))
        elif any(part in name for part in ("embed_tokens", "lm_head", "wte", "wpe")):
            parameter.copy_((0.7 if "wpe" in name else 0.2) * values)
        else:
            inputs = parameter.shape[0 if "c_" in name else -1]
            parameter.copy_(1.6 * values / inputs**0.5)


def make(name, seed):
    """Writes the fixture; returns the model to be judged, in float32 from the stored weights."""
    config_class, model_class, config = MODELS[name]
    directory = os.path.join(ROOT, "fixtures", f"tiny-{name}")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**config))
    randomise(model, seed)
    model.to(torch.bfloat16).save_pretrained(directory)
    os.remove(f"{directory}/generation_config.json")
    for file in os.listdir(directory):
        os.chmod(f"{directory}/{file}", 0o644)
    write_tokenizer(directory, config["vocab_size"])
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager"
    )
    return loaded.eval()


def prompts():
    """Prompts of 2, 17 and 100 tokens, and the positions whose full logits are kept."""
    generator = torch.Generator().manual_seed(11)
    for length, kept in {2: [1], 17: [0, 9, 16], 100: [18, 19, 20, 47, 64, 99]}.items():
        yield torch.randint(3, VOCABULARY, (length,), generator=generator).tolist(), kept


@torch.no_grad()
def routing_gap(model, sequences):
    """Least distance between the score of an expert that a token goes to and one that it does not go to."""
    gaps = []

    def see(router, inputs, _):
        scores = torch.nn.functional.linear(inputs[0].reshape(-1, router.hidden_dim), router.weight)
        top = torch.topk(scores, router.top_k + 1).values
        gaps.append(float((top[:, -2] - top[:, -1]).min()))

    routers = [module for module in model.modules() if type(module).__name__.endswith("TopKRouter")]
    hooks = [router.register_forward_hook(see) for router in routers]
    for ids in sequences if routers else []:
        model(input_ids=torch.tensor([ids]), use_cache=False)
    for hook in hooks:
        hook.remove()
    return min(gaps, default=None)


def golden(name, model):
    items = []
    for ids, kept in prompts():
        if name == "phi3":
            tiny_models.fix_rope(model, len(ids) + NEW_TOKENS)
        items.append(judged_prompt(model, ids, kept, NEW_TOKENS))
    header = {"model": f"tiny-{name}", "madeBy": "tools/reference/architectures.py, float32, greedy, end_id ignored"}
    write_json(os.path.join(ROOT, "goldens", f"tiny-{name}.json"), header, "prompts", items)
    deviation = torch.tensor([kept["values"] for kept in items[-1]["logits"]]).std()
    print(f"{name}: smallest gaps {[min(item['gaps']) for item in items]}, std {deviation:.2f}, {items[2]['tokens'][:12]}")
    gap = routing_gap(model, [item["promptIds"] + item["tokens"] for item in items])
    if gap is not None:
        print(f"{name}: the scores of experts lie {gap:.1e} apart at least")


def main():
    torch.set_num_threads(1)
    for index, name in enumerate(MODELS):
        if not sys.argv[1:] or name in sys.argv[1:]:
            golden(name, make(name, SEEDS.get(name, 3000 + index)))


if __name__ == "__main__":
    main()
