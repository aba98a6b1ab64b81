"""
Tiny LoRA adapters made by Hugging Face PEFT, and what transformers with PEFT computes with them in float32.

    python tools/reference/lora.py [NAME ...]

writes test/fixtures/lora-NAME (an adapter's folder as PEFT saves it) and test/goldens/lora.json. Of each adapter the
golden has:

    deltas     what PEFT adds to the weights of two modules, get_delta_weight, always as [out, in]: little-endian
               float32 in base64
    prompts    tokens and logits of two prompts, the adapter next to the base's weights (not merged), in the form of the
               goldens of the tiny models; no sequence is long enough to change the RoPE of its model

Names given replace their entries alone. A base model that is no fixture is one of families.py. The golden always comes from the stored files, read back and computed in float32. Weights are large enough for each
module of an adapter to matter.
"""

import base64
import json
import os
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from families import FILE as FAMILIES
from families import numbers
from golden import all_logits, judged_prompt, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
NEW_TOKENS = 16
KEPT = {9: [0, 4, 8], 40: [15, 31, 39]}

# name -> (base model, stored type, LoraConfig, modules whose delta is kept)
ADAPTERS = {
    "plain": (
        "tiny-gqa",
        torch.float32,
        {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
        ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.v_proj"],
    ),
    "patterns": (
        "tiny-gqa",
        torch.float16,
        {
            "r": 4,
            "lora_alpha": 6,
            "target_modules": "all-linear",
            # Of several keys that fit the first counts, and a key fits from a point on only. PEFT sorts them when it saves.
            "rank_pattern": {r"^model\.layers\.1\.(mlp|self_attn)\.[kgu].*": 5, "down_proj": 1, "k_proj": 2, "proj": 3},
            "alpha_pattern": {r".*\.\d+\.mlp\.(gate|up)_proj": 3.5, "1.self_attn.k_proj": 9, "o_proj": 0.75},
        },
        ["model.layers.1.self_attn.k_proj", "model.layers.1.mlp.gate_proj"],
    ),
    "rslora": (
        "tiny-gqa",
        torch.bfloat16,
        {
            "r": 8,
            "lora_alpha": 5,
            "use_rslora": True,
            "target_modules": ["o_proj", "down_proj"],
            "layers_to_transform": [1],
            "layers_pattern": "layers",
            "rank_pattern": {"o_proj": 3},
        },
        ["model.layers.1.self_attn.o_proj", "model.layers.1.mlp.down_proj"],
    ),
    "gpt2": (
        "tiny-gpt2",
        torch.float32,
        {"r": 3, "lora_alpha": 6, "target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True},
        ["transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_proj"],
    ),
    "phi3": (
        "tiny-phi3",
        torch.bfloat16,
        {"r": 2, "lora_alpha": 3, "target_modules": r".*\.(?:qkv|o|gate_up|down)_proj"},
        ["model.layers.0.self_attn.qkv_proj", "model.layers.1.mlp.down_proj"],
    ),
    # Attention has biases, a window in every other layer, and scores without values.
    "gpt-oss": (
        "gpt-oss",
        torch.float32,
        {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]},
        ["model.layers.0.self_attn.k_proj", "model.layers.2.self_attn.o_proj"],
    ),
}
TEMPORARY = tempfile.TemporaryDirectory()


def path_of(name):
    """Folder of a base model, which is written if it is one of families.py."""
    path = os.path.join(ROOT, "fixtures", name)
    if os.path.isdir(path):
        return path
    with open(FAMILIES, encoding="utf-8") as file:
        made = next(item for item in json.load(file)["families"] if item["name"] == name)
    path = os.path.join(TEMPORARY.name, name)
    os.makedirs(path, exist_ok=True)
    values = {key: numbers(key, shape, mean, spread) for key, shape, mean, spread in made["tensors"]}
    save_arrays(values, f"{path}/model.safetensors", {"format": "pt"})
    with open(f"{path}/config.json", "w", encoding="utf-8") as file:
        json.dump(made["config"], file)
    return path


def base_model(name):
    path = path_of(name)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    model.name_or_path = model.config._name_or_path = name
    return model


@torch.no_grad()
def fill(model, seed, scale):
    """Gives the adapter of a model random weights, so that B (A x) has about `scale` times the square root of its rank."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if "lora_" in name:
            factor = parameter.shape[1] ** -0.5 if "lora_A" in name else scale
            parameter.copy_(factor * torch.randn(parameter.shape, generator=generator))


def save_adapter(model, directory, storage):
    """Saves the adapter of a model as PEFT does, with its tensors in the type `storage`; the same files on each run."""
    shutil.rmtree(directory, ignore_errors=True)
    model.save_pretrained(directory)
    os.remove(f"{directory}/README.md")
    weights = f"{directory}/adapter_model.safetensors"
    save_file({key: tensor.to(storage) for key, tensor in load_file(weights).items()}, weights, {"format": "pt"})
    # PEFT writes some lists in the order of a set, which changes from run to run.
    config = f"{directory}/adapter_config.json"
    with open(config, encoding="utf-8") as file:
        settings = json.load(file)
    if isinstance(settings["target_modules"], list):
        settings["target_modules"].sort()
    with open(config, "w", encoding="utf-8") as file:
        json.dump(settings, file, indent=2)
        file.write("\n")
    for file in os.listdir(directory):
        os.chmod(f"{directory}/{file}", 0o644)


def write_adapter(name, seed):
    base, storage, options, _ = ADAPTERS[name]
    directory = os.path.join(ROOT, "fixtures", f"lora-{name}")
    model = get_peft_model(base_model(base), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.1, **options))
    fill(model, seed, 0.4)
    save_adapter(model, directory, storage)
    return directory


@torch.no_grad()
def delta(model, name):
    """What PEFT adds to a weight, as [out, in]: GPT-2's layers have theirs as [in, out]."""
    module = model.base_model.model.get_submodule(name)
    values = module.get_delta_weight("default")
    if module.fan_in_fan_out:
        values = values.T
    data = base64.b64encode(values.contiguous().numpy().astype("<f4").tobytes()).decode()
    return {"module": name, "scaling": module.scaling["default"], "shape": list(values.shape), "values": data}


@torch.no_grad()
def judged(name, directory):
    base, _, _, kept = ADAPTERS[name]
    plain = base_model(base)
    generator = torch.Generator().manual_seed(11)
    vocabulary = plain.config.vocab_size
    inputs = [torch.randint(3, vocabulary, (length,), generator=generator).tolist() for length in KEPT]
    without = [all_logits(plain, ids) for ids in inputs]
    model = PeftModel.from_pretrained(plain, directory).eval().float()
    prompts = [judged_prompt(model, ids, KEPT[len(ids)], NEW_TOKENS) for ids in inputs]
    for ids, before, prompt in zip(inputs, without, prompts):
        difference = (all_logits(model, ids) - before).abs().max()
        print(f"{name}: logits of {len(ids)} tokens change by up to {difference:.3g}, smallest gap {min(prompt['gaps'])}")
    deltas = [delta(model, module) for module in kept]
    return {"adapter": f"lora-{name}", "model": base, "deltas": deltas, "prompts": prompts}


def main():
    torch.set_num_threads(1)
    target = os.path.join(ROOT, "goldens", "lora.json")
    known = {}
    if sys.argv[1:]:
        with open(target, encoding="utf-8") as file:
            known = {item["adapter"]: item for item in json.load(file)["adapters"]}
    for index, name in enumerate(ADAPTERS):
        if not sys.argv[1:] or name in sys.argv[1:]:
            known[f"lora-{name}"] = judged(name, write_adapter(name, 2000 + index))
    items = [known[f"lora-{name}"] for name in ADAPTERS]
    header = {"madeBy": "tools/reference/lora.py, float32, greedy, end_id ignored"}
    write_json(target, header, "adapters", items)


if __name__ == "__main__":
    main()
