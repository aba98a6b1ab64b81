"""
Tiny models of many families, and what Hugging Face transformers answers for them, without their weights.

    python tools/reference/families.py [NAME ...]

writes test/goldens/families.json: for each model its config.json, the names and shapes of its tensors with the mean and the
spread of their numbers, and its answers (float32, their log-probabilities float64, greedy, end_id ignored). The numbers are those of `numbers` below, which
test/support/made-models.ts makes too. Names given replace their entries alone.

A model whose code is not transformers' own is one of transformers with the same numbers; `published` gives it the config of its own code.

A model may have several layouts of its tensors' names, as transformers 4 and 5 write them: transformers itself reads each
here, with the same logits.
"""

import json
import os
import sys
import tempfile
import zlib

import numpy
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

from family_models import MODELS, VOCABULARY
from golden import exact_log_probs, judged_prompt, log_probs, row

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "goldens", "families.json")
NEW_TOKENS = 16


def numbers(name, shape, mean, spread):
    """Even numbers around `mean` of standard deviation `spread`: 16 bits of mulberry32, counted from the name's CRC-32."""
    count = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        a = (zlib.crc32(name.encode()) + numpy.arange(1, count + 1, dtype=numpy.uint64) * 0x6D2B79F5).astype(numpy.uint32)
        t = (a ^ (a >> 15)) * (a | numpy.uint32(1))
        t = (t + (t ^ (t >> 7)) * (t | numpy.uint32(61))) ^ t
        bits = (t ^ (t >> 14)) >> 16
    even = (bits.astype(numpy.float64) - 32767.5) / 32768
    return (mean + spread * 3**0.5 * even).astype(numpy.float32).reshape(shape)


def measure(name, shape, gemma, head_norms=1.6, final_norm=2.0, decay=-2.0, gain=1.6):
    """
    Mean and spread of a tensor: peaked attention, and nothing trivial, as in architectures.py. `head_norms`, `final_norm` and `decay` are
    means of these weights, `gain` is what a matrix makes of its inputs' spread.
    """
    if name.endswith("act_fn.beta") or name.endswith("act_fn.eps"):
        return (0.5 if name.endswith("beta") else -1e-6), 0.0
    if name.endswith("A_log"):
        return decay, 0.8
    if name.endswith("bias"):
        return 0.0, 0.3
    if name.endswith("linear_attn.norm.weight"):
        return 1.0, 0.2
    if "norm" in name:
        size = head_norms if any(part in name for part in ("q_norm", "k_norm", "query_layernorm", "key_layernorm")) else 1.0
        if name.endswith("model.norm.weight") or name.endswith("language_model.norm.weight"):
            size = final_norm
        return size - (1 if gemma else 0), 0.2 * size
    if "embed_tokens" in name or "lm_head" in name:
        return 0.0, 0.2
    # Bounds that some numbers are beyond.
    if name.endswith(("input_min", "output_min")):
        return -1.2, 0.2
    if name.endswith(("input_max", "output_max")):
        return 1.2, 0.2
    if name.endswith("layer_scalar"):
        return 0.9, 0.1
    if name.endswith("scale"):
        return 1.0, 0.3
    if len(shape) < 2:
        return 0.0, 0.3
    return 0.0, round(gain / shape[-1] ** 0.5, 4)


def written_names(model, directory):
    """Names and shapes of the tensors as save_pretrained writes them."""
    model.save_pretrained(directory)
    with safe_open(f"{directory}/model.safetensors", "np") as file:
        return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}


def renamed(name, layout):
    for prefix, other in layout:
        if name.startswith(prefix):
            return other + name[len(prefix) :]
    return name


def load(model_class, directory):
    return model_class.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()


def prompts():
    """Two prompts, one of them beyond the models' windows, and the positions whose logits are kept."""
    generator = torch.Generator().manual_seed(23)
    for length, kept in {3: [2], 60: [24, 59]}.items():
        yield torch.randint(3, VOCABULARY, (length,), generator=generator).tolist(), kept


def made(spec):
    """The tensors of a model of code of its own, its config, and the model."""
    tensors = [[key, shape, *measure(key, shape, False)] for key, shape in spec["tensors"].items()]
    return tensors, dict(spec["fields"]), spec["make"]({tensor[0]: numbers(*tensor) for tensor in tensors})


def family(name):
    spec = MODELS[name]
    if "make" in spec:
        tensors, written, model = made(spec)
        items = [judged_prompt(model, ids, kept, NEW_TOKENS) for ids, kept in prompts()]
        print(f"{name}: smallest gaps {[min(item['gaps']) for item in items]}, {items[1]['tokens']}")
        return {"name": name, "config": written, "layouts": [], "tensors": tensors, "prompts": items}
    config = getattr(transformers, spec["config"])(**spec["fields"])
    model_class = getattr(transformers, spec["model"])
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        shapes = written_names(model_class(config), directory)
        gemma = spec["config"].startswith("Gemma") and not spec["config"].startswith("Gemma4") or spec.get("norms_less_1", False)
        tensors = [[key, shape, *measure(key, shape, gemma, **spec.get("measures", {}))] for key, shape in shapes.items()]
        values = {key: numbers(*tensor) for key, tensor in zip(shapes, tensors)}
        save_file(values, f"{directory}/model.safetensors", {"format": "pt"})
        model = load(model_class, directory)
        new_tokens = spec.get("new_tokens", NEW_TOKENS)
        items = [judged_prompt(model, ids, kept, new_tokens) for ids, kept in prompts()]
        for layout in spec.get("layouts", []):
            save_file({renamed(key, layout): value for key, value in values.items()}, f"{directory}/model.safetensors", {"format": "pt"})
            again = judged_prompt(load(model_class, directory), items[1]["promptIds"], [59], 1)
            assert again["logits"][0] == items[1]["logits"][1], f"{name}: transformers reads {layout} otherwise"
        if new_tokens > NEW_TOKENS:
            singles = [log_probs(model, item["promptIds"], item["tokens"]) for item in items]
            for item, single in zip(items, singles):
                exact = exact_log_probs(model, item["promptIds"], item["tokens"])
                # An engine may be 1e-5 from these: of a model of which float32 makes about as much by itself,
                # that would show nothing.
                assert (single - exact).abs().max() < 7e-6, f"{name}: float32 is {(single - exact).abs().max():.1e} from float64"
                item["logProbs"] = row(exact)
        with open(f"{directory}/config.json", encoding="utf-8") as file:
            written = json.load(file)
    written = spec.get("published", lambda fields: fields)(written)
    for key in ("transformers_version", "dtype"):
        written.pop(key, None)
    deviation = torch.tensor(items[-1]["logits"][-1]["values"]).std()
    print(f"{name}: smallest gaps {[min(item['gaps']) for item in items]}, std {deviation:.2f}, {items[1]['tokens']}")
    return {"name": name, "config": written, "layouts": spec.get("layouts", []), "tensors": tensors, "prompts": items}


def main():
    torch.set_num_threads(1)
    known = {}
    if sys.argv[1:] and os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["families"]}
    for name in MODELS:
        if name not in known or name in sys.argv[1:]:
            known[name] = family(name)
    made_by = f"tools/reference/families.py, transformers {transformers.__version__}, float32 (log-probabilities float64), greedy, end_id ignored"
    lines = ",\n  ".join(json.dumps(known[name], separators=(",", ":")) for name in MODELS)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "families": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
