"""Writes test/goldens/published-tensors.json: names and shapes of the tensors of published models, as transformers' own classes have them.

    pip install torch transformers
    python tools/reference/published-tensors.py

Reads test/fixtures/published-models.jsonl, and makes each model that is not refused on the meta device, which takes no memory. Matrices of
experts are named one by one, as the files on the hub have them. Layers that are alike are written once:

    { MODEL: [[name with {layer} and {expert}, shape, layers, experts], ...] }, where layers are a number, or a list where others lie between them

Matrices of layers that are quantised are the tensors that AWQ (gemm), fp8 (blocks) and MXFP4 (experts alone) write in place of one, with their
types at the end.
"""

import json
import re
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

TESTS = Path(__file__).parents[2] / "test"
LAYER = re.compile(r"(?<=layers\.)\d+(?=\.)|(?<=blocks\.)\d+(?=\.)|(?<=\bh\.)\d+(?=\.)")
QWEN = ("mlp.gate.weight", "mlp.experts.{expert}.gate_proj.weight", "mlp.experts.{expert}.up_proj.weight", "mlp.experts.{expert}.down_proj.weight")
MIXTRAL = (
    "block_sparse_moe.gate.weight",
    "block_sparse_moe.experts.{expert}.w1.weight",
    "block_sparse_moe.experts.{expert}.w3.weight",
    "block_sparse_moe.experts.{expert}.w2.weight",
)
# Shared experts keep their names.
EXPERTS = {
    "qwen2_moe": QWEN,
    "qwen3_moe": QWEN,
    "qwen3_next": QWEN,
    "olmoe": QWEN,
    "glm4_moe": QWEN,
    "lfm2_moe": (
        "feed_forward.gate.weight",
        "feed_forward.experts.{expert}.w1.weight",
        "feed_forward.experts.{expert}.w3.weight",
        "feed_forward.experts.{expert}.w2.weight",
    ),
    "mixtral": MIXTRAL,
    "phimoe": MIXTRAL,
}


# Models whose code is not transformers' own, by a class of transformers whose tensors have the same names and shapes.
TENSORS_OF = {"minicpm": "llama"}


# Beginnings of names, or parts of them, that files on the hub have otherwise than transformers 5 in memory.
RENAMED = {
    "nemotron_h": [("model.", "backbone.")],
    "phimoe": [("mlp.router.weight", "mlp.gate.weight")],
    "granitemoehybrid": [
        ("block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.input_linear.weight"),
        ("block_sparse_moe.experts.down_proj", "block_sparse_moe.output_linear.weight"),
        ("block_sparse_moe.router.weight", "block_sparse_moe.router.layer.weight"),
    ],
}


def published(model_type: str, name: str, shape: list[int]) -> list[tuple[str, list[int], int]]:
    """The tensors that files on the hub have in place of one in memory: names, shapes and the number of experts (0: no expert's)."""
    if ".mixer.experts." in name:
        return [(name.replace("experts.", "experts.{expert}.") + ".weight", shape[1:], shape[0])]
    match = re.fullmatch(r"(.*\.)(?:mlp|feed_forward)\.(gate\.weight|experts\..*)", name)
    if model_type not in EXPERTS or match is None:
        return [(name, shape, 0)]
    router, gate, up, down = EXPERTS[model_type]
    prefix, part = match.groups()
    if part == "gate.weight":
        return [(prefix + router, shape, 0)]
    experts, rows, columns = shape
    if part == "experts.down_proj":
        return [(prefix + down, [rows, columns], experts)]
    assert part == "experts.gate_up_proj", name
    return [(prefix + one, [rows // 2, columns], experts) for one in (gate, up)]


def quantised(config: dict, name: str, shape: list[int]) -> list[tuple[str, list[int], str | None]]:
    """The tensors that a quantised file has in place of a matrix: names, shapes and types (None: that of the others)."""
    method = config.get("quantization_config")
    if method is not None and method["quant_method"] == "mxfp4":
        if not re.search(r"\.experts\.(gate_up|down)_proj$", name):
            return [(name, shape, None)]
        experts, inputs, outputs = shape
        groups = [experts, outputs, inputs // 32]
        return [(name + "_blocks", groups + [16], "U8"), (name + "_scales", groups, "U8")]
    if method is None or not re.search(r"layers\.\d+\..*_proj\.weight$", name):
        return [(name, shape, None)]
    outputs, inputs = shape
    own = name.removesuffix("weight")
    if method["quant_method"] == "awq":
        groups, packed = inputs // method["group_size"], outputs * method["bits"] // 32
        parts = {"qweight": ([inputs, packed], "I32"), "qzeros": ([groups, packed], "I32"), "scales": ([groups, outputs], "F16")}
        return [(own + part, *of_part) for part, of_part in parts.items()]
    assert method["quant_method"] == "fp8", method
    blocks = [-(-size // of_block) for size, of_block in zip(shape, method["weight_block_size"])]
    return [(name, shape, "F8_E4M3"), (own + "weight_scale_inv", blocks, None)]


def numbered(layers: list[int]) -> int | list[int]:
    """Their count where they are the first ones."""
    return len(layers) if sorted(layers) == list(range(len(layers))) else sorted(layers)


def tensors_of(config: dict) -> list[list]:
    made = AutoConfig.for_model(**config | {"model_type": TENSORS_OF.get(config["model_type"], config["model_type"])})
    kind = AutoModelForImageTextToText if "vision_config" in config else AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(made)
    left_out = set(model.all_tied_weights_keys) if made.tie_word_embeddings else set()
    groups: dict[tuple, list[int]] = {}
    for name, tensor in model.state_dict().items():
        if name in left_out:
            continue
        for own, other in RENAMED.get(config["model_type"], []):
            name = name.replace(own, other)
        for whole, whole_shape, experts in published(config["model_type"], name, list(tensor.shape)):
            for own, shape, dtype in quantised(config, whole, whole_shape):
                key = (LAYER.sub("{layer}", own, count=1), tuple(shape), experts, dtype)
                layer = LAYER.search(own)
                groups.setdefault(key, []).append(int(layer[0]) if layer else 0)
    return [
        [name, list(shape), numbered(layers), experts] + ([dtype] if dtype else [])
        for (name, shape, experts, dtype), layers in groups.items()
    ]


def main() -> None:
    lines = (TESTS / "fixtures" / "published-models.jsonl").read_text().splitlines()
    models = [json.loads(line) for line in lines]
    written = []
    for model in models:
        if "refused" in model:
            continue
        try:
            tensors = tensors_of(model["config"])
        except Exception as error:
            raise SystemExit(f"{model['id']}: {error!r}")
        written.append(f"{json.dumps(model['id'])}: {json.dumps(tensors, separators=(',', ':'))}")
        print(model["id"], len(tensors))
    (TESTS / "goldens" / "published-tensors.json").write_text("{\n" + ",\n".join(written) + "\n}\n")


if __name__ == "__main__":
    main()
