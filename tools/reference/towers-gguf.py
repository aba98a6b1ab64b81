"""
What llama.cpp's converter makes of the models of towers.py, without their weights.

    python tools/reference/towers-gguf.py LLAMA_CPP_DIR [NAME ...]

writes test/goldens/towers-gguf.json: for each model the keys and tensors of the GGUF of its text model and of the one of its tower
(--mmproj), as families-gguf.py has them: the name and shape in the file, the tensor of towers.json that it was made of, and how. Of the
tower's also the types of its tensors where the file is asked for in each of TYPES, and the checksum of all their bytes. Names given replace
their entries alone.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy

made_of_families = importlib.import_module("families-gguf")  # finds llama.cpp too

import gguf  # noqa: E402
import torch  # noqa: E402
from conversion import get_model_class  # noqa: E402
from conversion.base import ModelType  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from families import numbers  # noqa: E402
from towers import FILE  # noqa: E402

TARGET = os.path.join(os.path.dirname(FILE), "towers-gguf.json")
TYPES = {"F32": "ALL_F32", "F16": "MOSTLY_F16", "BF16": "MOSTLY_BF16", "Q8_0": "MOSTLY_Q8_0"}
# Models whose text model is converted too; those of others are in families-gguf.json.
WITH_TEXT = {"qwen3-vl", "smolvlm", "pixtral"}
# LLaVA's towers come from the script for models that were there before --mmproj.
OLDER = {"llava"}
# Names that published files have, for those that transformers 5 writes.
DEEPER = {"vision_tower.": "vision_tower.vision_model."}
INTERNVL = {"vision_tower.": "model.vision_tower.", "multi_modal_projector.": "model.multi_modal_projector."}
PUBLISHED = {"gemma3": DEEPER, "llava": DEEPER, "internvl": INTERNVL}
# Classes of towers that the converter knows apart from the model's.
TOWER_CLASSES = {"internvl": "InternVisionModel"}


def published(name, tensor):
    for begin, ours in PUBLISHED.get(name, {}).items():
        if tensor.startswith(begin):
            return tensor.replace(begin, ours, 1)
    return tensor


def processor_of(config):
    """A preprocessor_config.json of the family, with numbers that are none of its defaults."""
    return {"image_mean": [0.48, 0.45, 0.41], "image_std": [0.26, 0.25, 0.28], "size": {"longest_edge": 48}, "image_seq_length": config.get("mm_tokens_per_image")}


def folder_of(made, values, directory):
    save_file(values, f"{directory}/model.safetensors", {"format": "pt"})
    config = made["config"]
    vocabulary = config["text_config"]["vocab_size"]
    token = {"content": "[IMG_BREAK]", "id": config.get("image_token_index", 0) + 1}
    files = {
        "config.json": config | {"torch_dtype": "float32"},
        "preprocessor_config.json": processor_of(config),
        "tokenizer_config.json": {},
        "tokenizer.json": {"model": {"vocab": {str(id): id for id in range(vocabulary)}}, "added_tokens": [token]},
    }
    for name, content in files.items():
        Path(directory, name).write_text(json.dumps(content), encoding="utf-8")


def keys_of(reader):
    skipped = ("GGUF.", "general.", "tokenizer.")
    return [
        [key, field.types[-1].name if field.types[-1].name == "FLOAT32" else field.types[0].name, made_of_families.plain(field)]
        for key, field in reader.fields.items()
        if not key.startswith(skipped) or key == "general.architecture"
    ]


def tensor_of(tensor, values, heads, orders):
    shape = [int(size) for size in reversed(tensor.shape)]
    data = numpy.array(tensor.data).reshape(shape)
    # Gemma's projection is never F32.
    if data.dtype == numpy.float16:
        data = data.astype(numpy.float32)
        values = {name: array.astype(numpy.float16).astype(numpy.float32) for name, array in values.items()}
    for name, array in values.items():
        for frame in range(array.shape[2] if array.ndim == 5 else 0):
            if array[:, :, frame].shape == data.shape and numpy.array_equal(array[:, :, frame], data):
                return [tensor.name, shape, name, {"frame": frame}]
    # Gemma 4's patches have their numbers by pixel, and in the file by channel.
    for name, array in values.items():
        if data.ndim == 4 and array.ndim == 2 and array.size == data.size:
            rows, channels, height, width = data.shape
            if numpy.array_equal(array.reshape(rows, height, width, channels).transpose(0, 3, 1, 2), data):
                return [tensor.name, shape, name, {"channelsFirst": True}]
    values = {name: array.reshape(1) if array.ndim == 0 else array for name, array in values.items()}
    source, how = made_of_families.made_of(data, values, heads, orders, [])
    return [tensor.name, shape, source, how]


def write(directory, config, kind, file_type, file):
    if kind == ModelType.MMPROJ and config["model_type"] in OLDER and config["vision_config"]["model_type"] == "clip_vision_model":
        return older(directory, config, file_type, file)
    # Published files of a SmolVLM name the class of its text model.
    is_smol = kind == ModelType.TEXT and config["model_type"] == "smolvlm"
    own = TOWER_CLASSES.get(config["model_type"], config["architectures"][0])
    model_class = get_model_class("LlamaForCausalLM" if is_smol else own, mmproj=kind == ModelType.MMPROJ)
    if kind != ModelType.MMPROJ:
        model_class.set_vocab = lambda self: None
        model_class.no_mtp = True
    model = model_class(Path(directory), gguf.LlamaFileType[file_type], file)
    if kind == ModelType.MMPROJ:
        # Layers of projectors have names up to the number of the tower's layers, of which published ones have more than two.
        model.tensor_map = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, 8)
    model.write()
    return True


# The script knows transformers whose tower of CLIP had its parts one name deeper.
AS_BEFORE = """
import runpy, sys, transformers
tower = transformers.CLIPVisionModel
own = tower.state_dict
tower.vision_model = property(lambda self: self)
tower.state_dict = lambda self, *rest, **more: {f"vision_model.{name}": value for name, value in own(self, *rest, **more).items()}
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def older(directory, config, file_type, file):
    """A tower of CLIP with LLaVA's projector, by the script that takes both apart from the text model; it knows F32 and F16."""
    if file_type not in ("ALL_F32", "MOSTLY_F16"):
        return False
    from safetensors.numpy import load_file

    parts = Path(directory, "parts")
    parts.mkdir(exist_ok=True)
    values = load_file(f"{directory}/model.safetensors")
    tower = {name.removeprefix("vision_tower."): value for name, value in values.items() if name.startswith("vision_tower.")}
    # The script reads the norm after the last layer, and drops it with that layer.
    width = config["vision_config"]["hidden_size"]
    for end in ("weight", "bias"):
        tower.setdefault(f"vision_model.post_layernorm.{end}", numpy.ones(width, numpy.float32))
    save_file(tower, parts / "model.safetensors", {"format": "pt"})
    (parts / "config.json").write_text(json.dumps(config["vision_config"] | {"architectures": ["CLIPVisionModel"], "projection_dim": 8}))
    (parts / "vocab.json").write_text("{}")
    projector = {name: torch.from_numpy(value) for name, value in values.items() if name.startswith("multi_modal_projector.")}
    torch.save(projector, parts / "llava.projector")
    script = os.path.join(made_of_families.LLAMA_CPP, "tools", "mtmd", "legacy-models", "convert_image_encoder_to_gguf.py")
    wanted = ["--use-f32"] if file_type == "ALL_F32" else []
    colours = ["--image-mean", "0.48", "0.45", "0.41", "--image-std", "0.26", "0.25", "0.28"]
    subprocess.run(
        [sys.executable, "-c", AS_BEFORE, script, "-m", parts, "--clip-model-is-vision", "--llava-projector", parts / "llava.projector", "-o", parts / "out", *colours, *wanted],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.path.join(made_of_families.LLAMA_CPP, "gguf-py")},
    )
    (made,) = (parts / "out").glob("*.gguf")
    made.rename(file)
    return True


def bytes_of(reader):
    checksum = 0
    for tensor in sorted(reader.tensors, key=lambda tensor: tensor.name):
        checksum = zlib.crc32(numpy.ascontiguousarray(tensor.data).tobytes(), checksum)
    return checksum


def convert(made):
    values = {published(made["name"], name): numbers(name, shape, mean, spread) for name, shape, mean, spread in made["tensors"]}
    config = made["config"]
    ours = {published(made["name"], name): name for name, *_ in made["tensors"]}
    item = {"name": made["name"]}
    parts = [("tower", ModelType.MMPROJ, "vision_config")]
    if made["name"] in WITH_TEXT:
        parts.insert(0, ("text", ModelType.TEXT, "text_config"))
    for part, kind, inner in parts:
        fields = config[inner]
        heads = {fields.get(key, 1) for key in ("num_attention_heads", "num_key_value_heads", "num_heads")}
        with tempfile.TemporaryDirectory() as directory:
            folder_of(made, values, directory)
            types, sums = {}, {}
            for name, file_type in TYPES.items():
                file = Path(directory) / "model.gguf"
                if not write(directory, config, kind, file_type, file):
                    continue
                reader = gguf.GGUFReader(file)
                if name == "F32":
                    orders = made_of_families.orders_of_heads(fields)
                    tensors = [tensor_of(tensor, values, heads, orders) for tensor in reader.tensors]
                    item[part] = {"keys": keys_of(reader), "tensors": [[a, b, ours.get(c, c), d] for a, b, c, d in tensors]}
                if kind == ModelType.TEXT:
                    break
                types[name] = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
                sums[name] = bytes_of(reader)
            if kind == ModelType.MMPROJ:
                names = [tensor[0] for tensor in item[part]["tensors"]]
                item["types"] = {name: [types[name][one] for one in names] for name in types}
                item["sums"] = sums
    print(made["name"], len(item["tower"]["tensors"]), item["sums"])
    return item


def main():
    with open(FILE, encoding="utf-8") as file:
        towers = json.load(file)["towers"]
    known = {}
    if sys.argv[2:]:
        with open(TARGET, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["towers"]}
    for made in towers:
        if not sys.argv[2:] or made["name"] in sys.argv[2:]:
            known[made["name"]] = convert(made)
    lines = ",\n  ".join(json.dumps(known[made["name"]], separators=(",", ":")) for made in towers if made["name"] in known)
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": "tools/reference/towers-gguf.py, llama.cpp 0.5.0-dev of node-llama-cpp 3.22.1",\n "towers": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
