"""
Makes the models of `npm run bench -- encoder`: a folder for each shape with what every side reads.

    python make_models.py FOLDER --minilm DIR --bpe DIR [--layers 4] [--shapes minilm,bge-base,...] [--llama DIR]

    FOLDER/SHAPE/               config.json, model.safetensors (f32), the tokenizer, the files of sentence-transformers
    FOLDER/SHAPE/onnx/          model.onnx (f32) by torch.onnx, and model_quantized.onnx: onnxruntime's dynamic int8
    FOLDER/SHAPE/F32.gguf       and Q8_0.gguf, by the converter in DIR, llama.cpp's source; left out without --llama

minilm has its own weights and reads 512 tokens, which its positions allow, where its files say 256. The others have random
weights of the published shapes, with --layers of their layers (0: all; ModernBERT and EmbeddingGemma one and a half times as many, since each
third or sixth of their layers sees everything), and tokenizers that are at hand: bge-base has minilm's, the others that of DIR, a folder with a
byte-level tokenizer.json such as SmolLM2's. It takes torch, transformers, onnx, onnxscript and onnxruntime.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

import torch
import transformers
from transformers import AutoModel

BERT_BASE = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 512,
}
MODERNBERT_BASE = {
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
    "max_position_embeddings": 8192,
    "local_attention": 128,
    # A second name of norm_eps, which the published file has too and the converter to GGUF reads.
    "layer_norm_eps": 1e-5,
}
QWEN3_EMBEDDING = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
}
# Without the two Dense modules after the pooling, whose one row a text takes no time.
EMBEDDINGGEMMA = {
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 24,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "query_pre_attn_scalar": 256,
    "sliding_window": 512,
    "use_bidirectional_attention": True,
    "max_position_embeddings": 2048,
}

# `around`: tokens before and after a text, by their places in the vocabulary of a byte-level tokenizer.
SHAPES = {
    "bge-base": {"config": "BertConfig", "fields": BERT_BASE, "pooling": "cls", "layers": 1},
    "modernbert-base": {"config": "ModernBertConfig", "fields": MODERNBERT_BASE, "pooling": "mean", "layers": 1.5, "around": [1, 2]},
    "qwen3-embedding-0.6b": {"config": "Qwen3Config", "fields": QWEN3_EMBEDDING, "pooling": "last", "layers": 1, "around": [None, 0]},
    "embeddinggemma": {"config": "Gemma3TextConfig", "fields": EMBEDDINGGEMMA, "pooling": "mean", "layers": 1.5, "around": [1, 2]},
}
POOLING = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}
# A text of the longest workload.
MOST_TOKENS = 512


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(value, file, indent=1)


def read_json(folder, name):
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def write_modules(folder, pooling, width):
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write_json(folder, "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ])
    modes = {f"pooling_mode_{mode}": name == pooling for name, mode in POOLING.items()}
    write_json(folder, "1_Pooling/config.json", {"word_embedding_dimension": width, **modes})
    os.makedirs(os.path.join(folder, "2_Normalize"), exist_ok=True)
    write_json(folder, "sentence_bert_config.json", {"max_seq_length": MOST_TOKENS, "do_lower_case": False})


def copy_minilm(source, folder):
    """The model as it is, but for its limit of 256 tokens and for the padding that its tokenizer asks for."""
    os.makedirs(folder, exist_ok=True)
    for name in ["config.json", "model.safetensors", "vocab.txt", "special_tokens_map.json"]:
        shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))
    copy_wordpiece(source, folder)
    write_modules(folder, "mean", read_json(folder, "config.json")["hidden_size"])


def copy_wordpiece(source, folder):
    write_json(folder, "tokenizer.json", read_json(source, "tokenizer.json") | {"truncation": None, "padding": None})
    write_json(folder, "tokenizer_config.json", read_json(source, "tokenizer_config.json") | {"model_max_length": MOST_TOKENS})
    for name in ["vocab.txt", "special_tokens_map.json"]:
        shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))


def copy_bpe(source, folder, around):
    """A byte-level tokenizer that puts tokens around a text."""
    tokenizer = read_json(source, "tokenizer.json")
    by_id = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    before, behind = ([] if token is None else [token] for token in around)
    text = {"Sequence": {"id": "A", "type_id": 0}}
    special = lambda token: {"SpecialToken": {"id": by_id[token], "type_id": 0}}
    single = [*map(special, before), text, *map(special, behind)]
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}, *map(special, behind)],
        "special_tokens": {by_id[token]: {"id": by_id[token], "ids": [token], "tokens": [by_id[token]]} for token in {*before, *behind}},
    }
    write_json(folder, "tokenizer.json", tokenizer)
    names = {"pad_token": by_id[0], "eos_token": by_id[around[1]]}
    if before:
        names |= {"bos_token": by_id[before[0]], "cls_token": by_id[before[0]], "sep_token": by_id[around[1]]}
    write_json(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MOST_TOKENS,
        "add_bos_token": bool(before),
        "add_eos_token": bool(behind),
        **names,
    })


def random_model(name, folder, layers, minilm, bpe):
    shape = SHAPES[name]
    fields = dict(shape["fields"])
    if layers > 0:
        fields["num_hidden_layers"] = min(fields["num_hidden_layers"], int(layers * shape["layers"]))
    os.makedirs(folder, exist_ok=True)
    if "around" in shape:
        copy_bpe(bpe, folder, shape["around"])
        first, last = shape["around"]
        ids = {"pad_token_id": 0, "bos_token_id": first or 0, "eos_token_id": last}
        if first is not None:
            ids |= {"cls_token_id": first, "sep_token_id": last}
        fields |= {"vocab_size": len(read_json(folder, "tokenizer.json")["model"]["vocab"]), **ids}
    else:
        copy_wordpiece(minilm, folder)
    torch.manual_seed(7)
    model = AutoModel.from_config(getattr(transformers, shape["config"])(**fields), dtype=torch.float32)
    model.save_pretrained(folder)
    write_modules(folder, shape["pooling"], fields["hidden_size"])


class States(torch.nn.Module):
    """The last hidden states, by inputs in the order of ONNX."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        options = {"use_cache": False} if self.model.config.model_type in ("qwen3", "gemma3_text") else {}
        return self.model(**dict(zip(self.names, inputs)), **options).last_hidden_state


def export_onnx(folder):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    names = ["input_ids", "attention_mask"]
    if model.config.model_type == "bert":
        names.append("token_type_ids")
    ids = torch.randint(5, 1000, (2, 24))
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))[: len(names)]
    inputs[1][1, 20:] = 0
    os.makedirs(os.path.join(folder, "onnx"), exist_ok=True)
    path = os.path.join(folder, "onnx", "model.onnx")
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    torch.onnx.export(
        States(model, names),
        inputs,
        path,
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_shapes={"inputs": tuple(dict(sizes) for _ in names)},
        dynamo=True,
        external_data=False,
    )
    check_onnx(path, model, names, inputs)
    quantize_dynamic(path, os.path.join(folder, "onnx", "model_quantized.onnx"), weight_type=QuantType.QInt8)


def check_onnx(path, model, names, inputs):
    """The file gives what the model gives, at a size other than that of the export too."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    longer = tuple(torch.cat([rows, rows, rows[:, :7]], 1) for rows in inputs)
    for each in (inputs, longer):
        with torch.inference_mode():
            expected = States(model, names)(*each)
        (found,) = session.run(None, {name: rows.numpy() for name, rows in zip(names, each)})
        mask = each[1].bool()
        far = (torch.from_numpy(found)[mask] - expected[mask]).abs().max().item()
        print(f"{path}: at most {far:.2e} from torch at {tuple(each[0].shape)}", file=sys.stderr)
        assert far < 1e-3, f"{path}: differs from torch by {far}"


def convert_gguf(folder, source):
    """By a copy whose tokenizer adds nothing: the converter knows a tokenizer by the ids of a text."""
    plain = f"{folder}.plain"
    shutil.copytree(folder, plain, ignore=shutil.ignore_patterns("onnx", "*.gguf", "model.safetensors"), dirs_exist_ok=True)
    os.link(os.path.join(folder, "model.safetensors"), os.path.join(plain, "model.safetensors"))
    tokenizer = read_json(plain, "tokenizer.json")
    if tokenizer["model"]["type"] == "BPE":
        write_json(plain, "tokenizer.json", tokenizer | {"post_processor": None})
    try:
        for kind in ["f32", "q8_0"]:
            target = os.path.join(folder, f"{kind.upper()}.gguf")
            script = os.path.join(source, "convert_hf_to_gguf.py")
            subprocess.run([sys.executable, script, plain, "--outtype", kind, "--outfile", target], check=True, stdout=subprocess.DEVNULL)
    finally:
        shutil.rmtree(plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--minilm", required=True, help="all-MiniLM-L6-v2")
    parser.add_argument("--bpe", required=True, help="a folder with a byte-level tokenizer.json")
    parser.add_argument("--layers", type=int, default=4, help="layers of the random models; 0: all")
    parser.add_argument("--shapes", default=",".join(["minilm", *SHAPES]))
    parser.add_argument("--llama", default="", help="llama.cpp's source")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    for name in arguments.shapes.split(","):
        folder = os.path.join(arguments.folder, name)
        if name == "minilm":
            copy_minilm(arguments.minilm, folder)
        else:
            random_model(name, folder, arguments.layers, arguments.minilm, arguments.bpe)
        for make in [export_onnx, *([lambda one: convert_gguf(one, arguments.llama)] if arguments.llama else [])]:
            try:
                make(folder)
            except Exception as error:  # a side without its file is left out; the others are measured
                print(f"{name}: {type(error).__name__}: {str(error)[:2000]}", file=sys.stderr)


if __name__ == "__main__":
    main()
