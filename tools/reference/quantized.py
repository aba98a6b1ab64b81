"""
Tiny models in each form of quantised safetensors, made by the libraries that define it, and what they stand for.

    python tools/reference/quantized.py [NAME ...]

writes test/fixtures/quantized/NAME (config.json, model.safetensors) and test/goldens/quantized.json: for each the SHA-256 of every
dequantised matrix in float32, as the library finds it from scales in float32, and what transformers answers with these
weights (float32, greedy, end_id ignored). Names given replace their entries alone. No GPU is needed. Besides requirements.txt it needs,
installed with --no-deps, what quantized-requirements.txt lists.
"""

import hashlib
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

from families import measure, numbers
from golden import judged_prompt, significant
from quantized_forms import FORMS, versions

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "test", "fixtures", "quantized")
FILE = os.path.join(HERE, "..", "..", "test", "goldens", "quantized.json")
VOCABULARY = 128
NEW_TOKENS = 16


def plain_model(form):
    """A model of one layer, whose numbers are made from their names, in the type of what is not quantised."""
    fields = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        **form.get("fields", {}),
    }
    config = getattr(transformers, form.get("config", "LlamaConfig"))(**fields)
    model = getattr(transformers, form.get("model", "LlamaForCausalLM"))(config)
    # The parameters alone: the frequencies of RoPE stay float32.
    for parameter in model.parameters():
        parameter.data = parameter.data.to(form["dtype"])
    state = {}
    for key, value in model.state_dict().items():
        if key == "lm_head.weight":
            continue
        shape = list(value.shape)
        state[key] = torch.from_numpy(numbers(key, shape, *measure(key, shape, False))).to(form["dtype"])
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    return model.eval()


def judged(model):
    generator = torch.Generator().manual_seed(23)
    prompts = [torch.randint(3, VOCABULARY, (length,), generator=generator).tolist() for length in (3, 24)]
    return [judged_prompt(model, ids, [len(ids) - 1], NEW_TOKENS) for ids in prompts]


def digest(tensor):
    """Zeros lose their sign, which a block of MXFP4 or a whole number does not have."""
    values = (tensor + 0.0).contiguous()
    return {"sha256": hashlib.sha256(values.numpy().tobytes()).hexdigest(), "first": [significant(value, 9) for value in values.flatten()[:4]]}


def record(name):
    form = FORMS[name]
    torch.manual_seed(0)
    model = plain_model(form)
    folder = os.path.join(FIXTURES, name)
    os.makedirs(folder, exist_ok=True)
    config = json.loads(model.config.to_json_string())
    tensors, quantization, dequantized = form["quantize"](model)
    for key in ("transformers_version", "dtype"):
        config.pop(key, None)
    config |= {"architectures": [type(model).__name__], "quantization_config": quantization}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, os.path.join(folder, "model.safetensors"))
    if "check" in form:
        form["check"](folder, dequantized)
    judge = plain_model(form).float()
    missing, unexpected = judge.load_state_dict(dequantized, strict=False)
    assert not unexpected and set(dequantized) <= set(judge.state_dict()), unexpected
    items = judged(judge)
    size = os.path.getsize(os.path.join(folder, "model.safetensors"))
    print(f"{name}: {size} bytes, smallest gaps {[min(item['gaps']) for item in items]}, {items[1]['tokens']}")
    own = form.get("matrices", dict)(dequantized)
    matrices = [{"name": key, "shape": list(value.shape), **digest(value)} for key, value in own.items()]
    return {"name": name, "matrices": matrices, "prompts": items}


def main():
    torch.set_num_threads(1)
    known = {}
    if sys.argv[1:] and os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["models"]}
    for name in FORMS:
        if name not in known or name in sys.argv[1:]:
            known[name] = record(name)
    made_by = f"tools/reference/quantized.py, {versions()}, float32, greedy, end_id ignored"
    lines = ",\n  ".join(json.dumps(known[name], separators=(",", ":")) for name in FORMS)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "models": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
