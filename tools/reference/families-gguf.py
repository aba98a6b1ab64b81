"""
What llama.cpp's converter makes of the models of families.py, without their weights.

    python tools/reference/families-gguf.py LLAMA_CPP_DIR [NAME ...]

writes test/goldens/families-gguf.json: for each model the keys of its GGUF (without those of the tokenizer), and its tensors: the name and
shape in the file, the tensor of families.json that it was made of, and how; `withHeads` are models with the heads of draft-heads.py. Names given replace their entries alone. LLAMA_CPP_DIR is a checkout of llama.cpp, such as the one that
node-llama-cpp downloads.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy

LLAMA_CPP = os.path.abspath(sys.argv[1])
sys.path.insert(0, LLAMA_CPP)
sys.path.insert(0, os.path.join(LLAMA_CPP, "gguf-py"))

import gguf  # noqa: E402
from conversion import get_model_class  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from families import FILE, numbers  # noqa: E402

HEADS = os.path.join(os.path.dirname(FILE), "draft-heads.json")
TARGET = os.path.join(os.path.dirname(FILE), "families-gguf.json")
# Those that the converter does not know, or whose tokenizer it asks for; glm, whose heads are wider than its
# hidden size, is converted without their width (glm-4-9b is not), lfm2-bias, as whose convolution's biases it
# fails, and falcon-h1-norm, whose norm llama.cpp has after its gate.
NOT_CONVERTED = {"qwen2-moe-steps", "lfm2-moe-shares", "gpt-oss-clamped", "phi-moe-near", "lfm2-bias", "falcon-h1-norm", "ministral", "internvl", "idefics3", "smolvlm", "gemma3-vision", "mistral-small3", "glm"}


def permuted(array, heads):
    """Rows of each head as llama.cpp's own RoPE has them."""
    return array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def tiled(array, axis, first, key_heads, of_key, width):
    """Heads of values from `first` on along an axis, of which each key head has several: first those that come first of each key head."""
    kept, moved = numpy.split(array, [first], axis)
    shape = moved.shape
    apart = moved.reshape(*shape[:axis], key_heads, of_key, width, *shape[axis + 1 :])
    return numpy.concatenate([kept, apart.swapaxes(axis, axis + 1).reshape(shape)], axis)


def orders_of_heads(config):
    """Arguments of `tiled` for the tensors of a delta rule, of which most have other shapes."""
    keys, heads = config.get("linear_num_key_heads", 0), config.get("linear_num_value_heads", 0)
    if keys == heads:
        return []
    before, width = 2 * keys * config["linear_key_head_dim"], config["linear_value_head_dim"]
    return [(axis, first, keys, heads // keys, size) for axis, first, size in ((0, 0, 1), (0, 0, width), (0, before, width), (1, 0, width))]


def is_tiled(array, data, order):
    axis, first, keys, of_key, width = order
    if axis >= array.ndim or array.shape[axis] != first + keys * of_key * width:
        return False
    return numpy.array_equal(tiled(array, *order), data)


def scalings(config):
    """Factors that the converter of Falcon-H1 multiplies matrices by, one after the other: [rows or None for all, factors] of each part."""
    if config.get("model_type") != "falcon_h1":
        return []
    gate, down = config["mlp_multipliers"]
    attention, keys = config["attention_in_multiplier"], config["key_multiplier"]
    heads, width = config["mamba_n_heads"], config["mamba_d_ssm"]
    shared = config["mamba_n_groups"] * config["mamba_d_state"]
    parts = zip([width, width, shared, shared, heads], config["ssm_multipliers"])
    alone = [
        [down], [gate], [keys, attention], [attention], [config["attention_out_multiplier"]], [config["ssm_out_multiplier"]],
        [config["lm_head_multiplier"]], [config["embedding_multiplier"]],
    ]
    whole = [[[None, factors]] for factors in alone if any(factor != 1 for factor in factors)]
    return whole + [[[rows, [config["ssm_in_multiplier"], factor]] for rows, factor in parts]]


def scaled(array, parts):
    if parts[0][0] is not None and sum(rows for rows, _ in parts) != len(array):
        return None
    out, first = array.copy(), 0
    for rows, factors in parts:
        end = len(array) if rows is None else first + rows
        for factor in factors:
            out[first:end] *= numpy.float32(factor)
        first = end
    return out


def rows_of_stack(array, data):
    """Where each expert of a stack of two matrices has one of them: [first row, rows of both]; None: it has not."""
    if array.ndim != 3 or data.ndim != 3 or array.shape[::2] != data.shape[::2] or array.shape[1] != 2 * data.shape[1]:
        return None
    for first in (0, data.shape[1]):
        if numpy.array_equal(array[:, first : first + data.shape[1]], data):
            return [first, array.shape[1]]
    return None


def columns_of_stack(array, data):
    """Which columns of each matrix of a stack are rows here, or entries of a stack of vectors: [first, step]; None: none are."""
    for first, step in ((0, 1), (0, 2), (1, 2)):
        taken = array[..., first::step]
        rows = taken.swapaxes(1, 2) if taken.ndim == 3 else taken
        if numpy.array_equal(rows, data):
            return [first, step]
    return None


def of_experts(data, values):
    """Names of the matrices of experts, one for each, that a tensor has stacked; None: it has others."""
    for name, array in values.items():
        if ".experts.0." in name and array.shape == data.shape[1:] and numpy.array_equal(array, data[0]):
            names = [name.replace(".experts.0.", f".experts.{expert}.") for expert in range(len(data))]
            if all(numpy.array_equal(values[one], data[expert]) for expert, one in enumerate(names)):
                return names
    return None


def of_rows(data, values):
    """The matrix whose rows these are in another order, and their numbers; None: there is none."""
    for name, array in values.items():
        if array.ndim != 2 or data.ndim != 2 or array.shape[1] != data.shape[1] or len(array) < len(data):
            continue
        places = {row.tobytes(): at for at, row in enumerate(array)}
        rows = [places.get(row.tobytes()) for row in data]
        if None not in rows:
            return name, rows
    return None


def made_of(data, values, heads, orders, factors):
    """
    The tensor that the file's was made of, and how: as it is, 1 added, rows of heads interleaved, heads of values tiled, or some of its
    rows, of each expert or of all, or parts multiplied by factors, or its rows in another order; matrices of experts; or the numbers of one
    that was made of config.json or in another way. Dimensions of 1 may be left out, and vectors be matrices.
    """
    for name, array in values.items():
        if array.size == data.size and array.ndim == 3 and data.ndim == 2:
            array = array.squeeze(1)
        if array.size == data.size and (array.ndim == 1 or array.shape == (1, *data.shape)):
            array = array.reshape(data.shape)
        if ".experts." in name and array.ndim == data.ndim and not numpy.array_equal(array, data):
            columns = columns_of_stack(array, data)
            if columns is not None:
                return name, {"columns": columns}
        stack = rows_of_stack(array, data)
        if stack is not None:
            return name, {"stack": stack}
        if array.shape == data.shape:
            for order in orders:
                if is_tiled(array, data, order) and not numpy.array_equal(array, data):
                    return name, {"tiled": list(order)}
            if numpy.array_equal(array, data):
                return name, {}
            if numpy.array_equal(array + numpy.float32(1), data):
                return name, {"addend": 1}
            for parts in factors:
                if array.ndim == 2 and numpy.array_equal(scaled(array, parts), data):
                    return name, {"scaled": parts}
            for count in heads:
                if array.shape[0] % (2 * count) == 0 and numpy.array_equal(permuted(array, count), data):
                    return name, {"interleavedHeads": count}
        elif array.ndim == 2 and array.shape[1:] == data.shape[1:] and array.shape[0] > data.shape[0]:
            for first in range(0, array.shape[0] - data.shape[0] + 1, data.shape[0]):
                if numpy.array_equal(array[first : first + data.shape[0]], data):
                    return name, {"firstRow": first}
    experts, rows = of_experts(data, values), of_rows(data, values)
    if experts is not None:
        return "", {"joined": experts}
    if rows is not None:
        return rows[0], {"rows": rows[1]}
    if data.size < 64:
        return "", {"values": [float(value) for value in data.flatten()]}
    raise ValueError("is made of no tensor")


def plain(field):
    value = field.contents()
    return value.tolist() if isinstance(value, numpy.ndarray) else value


def convert(made):
    values = {name: numbers(name, shape, mean, spread) for name, shape, mean, spread in made["tensors"]}
    config = made["config"].get("text_config", made["config"])
    heads = {config.get("num_attention_heads", 1), config.get("num_key_value_heads", 1)}
    with tempfile.TemporaryDirectory() as directory:
        save_file(values, f"{directory}/model.safetensors", {"format": "pt"})
        with open(f"{directory}/config.json", "w", encoding="utf-8") as file:
            json.dump(made["config"] | {"torch_dtype": "float32", "rotary_pct": 1.0}, file)
        # The converter of Gemma counts its entries.
        with open(f"{directory}/tokenizer.json", "w", encoding="utf-8") as file:
            json.dump({"model": {"vocab": {str(id): id for id in range(config["vocab_size"])}}, "added_tokens": []}, file)
        model_class = get_model_class(made["config"]["architectures"][0])
        model_class.set_vocab = lambda self: None
        model_class.no_mtp = not config.get("mtp_num_hidden_layers")
        file = Path(directory) / "model.gguf"
        # transformers 5 reads experts into a config that has none.
        raw = {"hparams": dict(made["config"])} if config.get("model_type") == "nemotron_h" else {}
        model_class(Path(directory), gguf.LlamaFileType.ALL_F32, file, **raw).write()
        reader = gguf.GGUFReader(file)
        skipped = ("GGUF.", "general.", "tokenizer.")
        keys = [
            [key, field.types[-1].name if field.types[-1].name == "FLOAT32" else field.types[0].name, plain(field)]
            for key, field in reader.fields.items()
            if not key.startswith(skipped) or key == "general.architecture"
        ]
        tensors = []
        for tensor in reader.tensors:
            shape = [int(size) for size in reversed(tensor.shape)]
            data = numpy.array(tensor.data).reshape(shape)
            source, how = made_of(data, values, heads, orders_of_heads(config), scalings(config))
            tensors.append([tensor.name, shape, source, how])
    print(made["name"], dict((key, value) for key, _, value in keys)["general.architecture"], len(tensors))
    return {"name": made["name"], "keys": keys, "tensors": tensors}


def with_heads(models):
    """The models with the heads that draft-heads.py has judged."""
    with open(HEADS, encoding="utf-8") as file:
        heads = json.load(file)["heads"]
    for head in heads:
        made = next(item for item in models if item["name"] == head["name"])
        config = made["config"] | {"mtp_num_hidden_layers": 1}
        yield {"name": head["name"], "config": config, "tensors": made["tensors"] + head["tensors"]}


def main():
    with open(FILE, encoding="utf-8") as file:
        models = json.load(file)["families"]
    known = {}
    if sys.argv[2:]:
        with open(TARGET, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["families"]}
    names = [made["name"] for made in models if made["name"] not in NOT_CONVERTED]
    for made in models:
        if made["name"] in names and (not sys.argv[2:] or made["name"] in sys.argv[2:]):
            known[made["name"]] = convert(made)
    converted = [known[name] for name in names if name in known]
    heads = [convert(made) for made in with_heads(models)]
    lines, ends = (",\n  ".join(json.dumps(item, separators=(",", ":")) for item in items) for items in (converted, heads))
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": "tools/reference/families-gguf.py, llama.cpp 0.5.0-dev of node-llama-cpp 3.22.1",\n "families": [\n  {lines}\n ],\n "withHeads": [\n  {ends}\n ]}}\n')


if __name__ == "__main__":
    main()
