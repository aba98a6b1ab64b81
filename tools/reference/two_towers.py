"""
Tiny models of two towers, CLIP and SigLIP, and what Hugging Face transformers makes of pictures and texts, without their weights.

    python tools/reference/two_towers.py

writes test/goldens/two-towers.json: for each model its config.json and tokenizer.json, the names and shapes of its tensors with the mean and
the spread of their numbers, texts with their tokens and embeddings, and the embeddings of pictures, all of length 1 (float32). Weights and
pictures are those of `numbers` in families.py; further pictures are files of test/goldens/pictures.json, which transformers opens and
prepares by the settings that are written too.
"""

import base64
import io
import json
import os
import string
import tempfile

import torch
import transformers
from PIL import Image
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from transformers.image_utils import load_image
from transformers.models.clip.image_processing_clip import CLIPImageProcessor
from transformers.models.siglip.image_processing_siglip import SiglipImageProcessor

from families import load, measure, numbers, written_names
from golden import row
from towers import CHANNELS, PATCH, pixels

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "goldens", "two-towers.json")
PICTURES = os.path.join(os.path.dirname(FILE), "pictures.json")
FILES = ["png rgb", "jpeg exif 6", "webp", "png palette", "gif full of codes"]
TEXTS = [
    "a photo of a cat",
    "A Photo  of two DOGS, in the snow!",
    "it's the dog's 2nd photo; isn't it?",
    "caf\u00e9 \u00fcber na\u00efve \u732b",
    "",
    "the quick brown fox jumps over the lazy dog, again",
]
CORPUS = ["a photo of a cat", "two dogs in the snow", "the dog's photo", "it's a photo", "over and over again", "caf\u00e9 \u00fcber"]
DIMENSIONS = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
SIDE = 8


def clip_tokenizer():
    """The files of CLIP's tokenizer class, whose words end with </w>."""
    bpe = Tokenizer(models.BPE(end_of_word_suffix="</w>", continuing_subword_prefix=""))
    bpe.normalizer = normalizers.Lowercase()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, end_of_word_suffix="</w>", initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(CORPUS, trainer)
    trained = json.loads(bpe.to_str())["model"]
    # As in the published one, each byte stands in the middle of a word and at its end.
    names = sorted(alphabet)
    known = names + [f"{name}</w>" for name in names]
    known += [token for token in trained["vocab"] if token not in set(known)]
    known += ["<|startoftext|>", "<|endoftext|>"]
    merges = [tuple(pair) for pair in trained["merges"]]
    return transformers.CLIPTokenizer(vocab={token: i for i, token in enumerate(known)}, merges=merges)


def siglip_tokenizer():
    """A tokenizer as that of the published SigLIP: lower case, without punctuation, pieces of a unigram model, </s> at the end and as padding."""
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex("[" + "".join("\\" + sign for sign in string.punctuation) + "]"), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    unigram.train_from_iterator(CORPUS * 3, trainer)
    unigram.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"eos_token": "</s>", "pad_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=unigram, **names)


def clip(tokenizer):
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    text = DIMENSIONS | {"vocab_size": len(tokenizer), "max_position_embeddings": 77} | ends
    vision = DIMENSIONS | {"hidden_size": 24, "image_size": SIDE, "patch_size": PATCH}
    return transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=20)


def siglip(tokenizer):
    text = DIMENSIONS | {"vocab_size": len(tokenizer), "max_position_embeddings": 64, "projection_size": 24}
    vision = DIMENSIONS | {"hidden_size": 24, "image_size": SIDE, "patch_size": PATCH}
    return transformers.SiglipConfig(text_config=text, vision_config=vision)


MODELS = {
    "clip": (clip_tokenizer, clip, transformers.CLIPModel, {"padding": True}),
    "siglip": (siglip_tokenizer, siglip, transformers.SiglipModel, {"padding": "max_length", "max_length": 64}),
}
PROCESSORS = {
    "clip": (CLIPImageProcessor, {"size": {"shortest_edge": SIDE}, "crop_size": SIDE}),
    "siglip": (SiglipImageProcessor, {"size": {"height": SIDE, "width": SIDE}}),
}


def files():
    with open(PICTURES, encoding="utf-8") as file:
        known = {one["name"]: one["file"] for one in json.load(file)["files"]}
    return {name: load_image(Image.open(io.BytesIO(base64.b64decode(known[name])))) for name in FILES}


def unit(output):
    rows = output.pooler_output
    return rows / rows.norm(p=2, dim=-1, keepdim=True)


@torch.no_grad()
def two_towers(name):
    make_tokenizer, make_config, model_class, padding = MODELS[name]
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save_pretrained(directory)
        shapes = written_names(model_class(make_config(tokenizer)), directory)
        tensors = [[key, shape, *measure(key, shape, False)] for key, shape in shapes.items() if not key.startswith("logit_")]
        values = {tensor[0]: numbers(*tensor) for tensor in tensors}
        scales = {key: numbers(key, shape, 1.0, 0.1) for key, shape in shapes.items() if key.startswith("logit_")}
        save_file(values | scales, f"{directory}/model.safetensors", {"format": "pt"})
        model = load(model_class, directory)
        grid = SIDE // PATCH
        pictures = [["picture.%d" % i, [grid * grid, CHANNELS * PATCH**2], 0.0, 0.5] for i in range(3)]
        seen = pixels([torch.from_numpy(numbers(*picture)) for picture in pictures], [[grid, grid]] * len(pictures))
        of_pictures = unit(model.get_image_features(pixel_values=seen))
        processor_class, settings = PROCESSORS[name]
        processor = processor_class(**settings)
        of_files = []
        for file, picture in files().items():
            prepared = processor(picture, return_tensors="pt")["pixel_values"]
            of_files.append({"file": file, "row": row(unit(model.get_image_features(pixel_values=prepared))[0])})
        # Each text by itself, with its padding where the model was trained with that.
        of_texts, tokens = [], []
        for text in TEXTS:
            ids = tokenizer(text, **padding)["input_ids"]
            of_texts.append(unit(model.get_text_features(input_ids=torch.tensor([ids])))[0])
            tokens.append(tokenizer(text)["input_ids"])
        model.double()
        again = unit(model.get_image_features(pixel_values=seen.double()))
        error = float((again - of_pictures).abs().max())
        read = lambda file: json.load(open(f"{directory}/{file}", encoding="utf-8"))
        config, tokenizer_json, tokenizer_config = read("config.json"), read("tokenizer.json"), read("tokenizer_config.json")
    for key in ("transformers_version", "dtype"):
        config.pop(key, None)
    tokenizer_json["padding"] = tokenizer_json["truncation"] = None
    named = {key: tokenizer_config[key] for key in ("bos_token", "eos_token", "pad_token", "unk_token") if tokenizer_config.get(key)}
    cosines = (torch.stack(of_texts) @ of_pictures.T).flatten()
    print(f"{name}: {len(tokenizer)} tokens, cosines {cosines.min():.3f} to {cosines.max():.3f}, float32 within {error:.2g} of float64")
    return {
        "name": name,
        "config": config,
        "tokenizer": tokenizer_json,
        "tokenizerConfig": named,
        "tensors": tensors,
        "pictures": pictures,
        "grids": [[grid, grid]] * len(pictures),
        "pictureRows": [row(one) for one in of_pictures],
        "imageProcessor": {"image_processor_type": processor_class.__name__} | settings,
        "files": of_files,
        "texts": [{"text": text, "tokens": ids, "row": row(one)} for text, ids, one in zip(TEXTS, tokens, of_texts)],
    }


def main():
    torch.set_num_threads(1)
    made_by = f"tools/reference/two_towers.py, transformers {transformers.__version__}, float32"
    lines = ",\n  ".join(json.dumps(two_towers(name), separators=(",", ":")) for name in MODELS)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "models": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
