"""
What llama.cpp's converter makes of models of embedders.py, without their weights.

    python tools/reference/embedders-gguf.py LLAMA_CPP_DIR [NAME ...]

writes test/goldens/embedders-gguf.json: for each model the keys of its GGUF, with those of its tokenizer, and its tensors: the name and shape
in the file, the tensor of embedders.json that it was made of, and how. LLAMA_CPP_DIR is a checkout of llama.cpp, or vendor/llama.cpp of the
source package of llama-cpp-python.
"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy
from safetensors.numpy import save_file

from embedders import FILE, TEST, write_json
from families import numbers

families_gguf = importlib.import_module("families-gguf")
import gguf  # noqa: E402
from conversion import ModelBase, get_model_class  # noqa: E402

TARGET = os.path.join(os.path.dirname(FILE), "embedders-gguf.json")
# The tokens for yes and no that stand in for those of the converter, and what a file calls them.
JUDGES = {"qwen3-reranker": [70, 75]}
NOW = {"n_embd": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers", "n_inner": "intermediate_size"}
CONVERTED = ["bert", "roberta-score", "distilbert", "distilbert-score", "modernbert", "modernbert-score", "nomic-embed", "nomic-embed-moe", "qwen3-embedding", "qwen3-reranker", "embeddinggemma"]


def made_of(data, values, heads):
    """
    As in families-gguf.py, and also matrices of experts that lie below each other, as they are or each of them turned, some rows from
    anywhere on, or two rows that lie apart.
    """
    if data.ndim == 3:
        count, rows, columns = data.shape
        for name, array in values.items():
            if array.size != data.size:
                continue
            if numpy.array_equal(array.reshape(count, rows, columns), data):
                return name, {}
            if numpy.array_equal(array.reshape(count, columns, rows).transpose(0, 2, 1), data):
                return name, {"turned": True}
    try:
        return families_gguf.made_of(data, values, heads, [])
    except ValueError:
        for name, array in values.items():
            if array.ndim != 2 or data.ndim != 2 or array.shape[1] != data.shape[1]:
                continue
            rows = [int(numpy.flatnonzero((array == row).all(axis=1))[0]) for row in data if (array == row).all(axis=1).any()]
            if len(rows) == len(data):
                return name, {"rows": rows} if len(rows) == 2 else {"firstRow": rows[0]}
        raise


def write_folder(folder, made):
    """The model's files. Returns all its tensors."""
    values = {}
    for path, tensors in made["tensors"].items():
        arrays = {name: numbers(name, shape, mean, spread) for name, shape, mean, spread in tensors}
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        save_file(arrays, os.path.join(folder, path), {"format": "pt"})
        prefix = "" if "/" not in path else path.replace("model.safetensors", "")
        values |= {prefix + name: array for name, array in arrays.items()}
    for path, value in made["files"].items():
        write_json(folder, path, value)
    with open(os.path.join(TEST, "fixtures", made["tokenizer"]["of"], "tokenizer.json"), encoding="utf-8") as file:
        write_json(folder, "tokenizer.json", json.load(file) | made["tokenizer"]["changed"])
    return values


def write_text(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def set_judges(model, made):
    model.is_rerank = True
    model.is_tied_embeddings = made["files"]["config.json"].get("tie_word_embeddings", False)
    model.token_true_id, model.token_false_id = JUDGES[made["name"]]


def convert(made):
    config = made["files"]["config.json"]
    heads = {config.get("num_attention_heads", 1), config.get("num_key_value_heads", 1)}
    with tempfile.TemporaryDirectory() as directory:
        values = write_folder(directory, made)
        # The converter reads a config by transformers, which has other names for fields of published ones.
        now = {NOW[key]: value for key, value in config.items() if key in NOW}
        write_json(directory, "config.json", config | now | {"torch_dtype": "float32"})
        model_class = get_model_class(config["architectures"][0])
        # The converter knows tokenizers by what they make of a text.
        if made["name"] in JUDGES:
            write_text(directory, "README.md", "# Qwen3-Reranker")
            model_class._find_rerank_config = lambda self: set_judges(self, made)
        if "moe_every_n_layers" in config:
            # transformers has a class of this name for another model alone, and its defaults where the files say otherwise.
            ModelBase.load_hparams = staticmethod(lambda folder, *_: json.loads((Path(folder) / "config.json").read_text()))
        model_class.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
        file = Path(directory) / "model.gguf"
        options = {"sentence_transformers_dense_modules": True} if "Dense" in json.dumps(made["files"].get("modules.json", "")) else {}
        model_class(Path(directory), gguf.LlamaFileType.ALL_F32, file, **options).write()
        reader = gguf.GGUFReader(file)
        keys = []
        for key, field in reader.fields.items():
            if key.startswith("GGUF.") or (key.startswith("general.") and key != "general.architecture"):
                continue
            kind = field.types[-1].name if field.types[-1].name in ("FLOAT32", "STRING") else field.types[0].name
            value = families_gguf.plain(field)
            if key == "tokenizer.ggml.tokens" and made["name"] in JUDGES:
                value[-2:] = ["yes", "no"]
            keys.append([key, kind, value])
        tensors = []
        for tensor in reader.tensors:
            shape = [int(size) for size in reversed(tensor.shape)]
            source, how = made_of(numpy.array(tensor.data).reshape(shape), values, heads)
            tensors.append([tensor.name, shape, source, how])
    plain = [key for key in keys if not isinstance(key[2], list) and key[0] != "tokenizer.chat_template"]
    print(made["name"], [[key, value] for key, _, value in plain], [tensor[0] for tensor in tensors if "blk" not in tensor[0]])
    return {"name": made["name"], "keys": keys, "tensors": tensors}


def main():
    with open(FILE, encoding="utf-8") as file:
        models = {item["name"]: item for item in json.load(file)["models"]}
    known = {}
    if os.path.exists(TARGET):
        with open(TARGET, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["models"]}
    for name in CONVERTED:
        if name not in known or name in sys.argv[2:]:
            known[name] = convert(models[name])
    lines = ",\n  ".join(json.dumps(known[name], separators=(",", ":")) for name in CONVERTED)
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": "tools/reference/embedders-gguf.py, a checkout of llama.cpp",\n "models": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
