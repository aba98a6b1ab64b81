"""
Tiny random-weight encoders of the BERT family, all-MiniLM-L6-v2, and what Hugging Face transformers answers for them.

    python tools/reference/encoders.py [--minilm FOLDER]

writes test/fixtures/tiny-NAME (a Hugging Face directory each), test/goldens/encoders.json and, with --minilm, the
folder that tools/reference/fetch-minilm.py has made, test/goldens/minilm.json. Seeds are fixed: the same versions of
torch and tokenizers write the same bytes.

Everything is computed in float32 from the stored weights, one text at a time, so that no padding takes part. Pooling and
normalisation are sentence-transformers' (modules.json), a score's activation that of its CrossEncoder.
"""

import argparse
import json
import os
import random
import shutil

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from golden import row, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
IDENTITY = "torch.nn.modules.linear.Identity"


def base(**changes):
    return {
        "vocab_size": 150,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "pad_token_id": 0,
    } | changes


# name -> (class, configuration, storage type, options)
VARIANTS = {
    "bert-mean": (BertModel, BertConfig(**base()), torch.float32, {"pooling": "mean", "normalize": True}),
    # Longer than one split of the attention; heads of 10 dimensions, which no vector divides.
    "bert-cls": (
        BertModel,
        BertConfig(**base(hidden_size=40, num_attention_heads=4, intermediate_size=72, max_position_embeddings=600, hidden_act="gelu_new")),
        torch.bfloat16,
        {"pooling": "cls", "normalize": False},
    ),
    "bert-last": (
        BertModel,
        BertConfig(**base(hidden_size=32, num_attention_heads=1, hidden_act="relu", layer_norm_eps=1e-5)),
        torch.bfloat16,
        {"pooling": "last", "normalize": True},
    ),
    "bert-score": (BertForSequenceClassification, BertConfig(**base(), num_labels=1), torch.float32, {}),
    "roberta-score": (
        RobertaForSequenceClassification,
        RobertaConfig(**base(max_position_embeddings=66, type_vocab_size=1, pad_token_id=1), num_labels=1),
        torch.bfloat16,
        {"activation": IDENTITY},
    ),
}

WORDS = "the a cat dog sat on mat un believ able bird fly high in sky what is question answer of one two three".split()
SUFFIXES = ["s", "ing", "ed", "able", "a", "b", "c", "d", "e", "x", "y", "z", "1", "2"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789.,?!'-") + ["é", "中"]


def write_tokenizer(folder, is_roberta):
    specials = ["<s>", "<pad>", "</s>", "<unk>"] if is_roberta else ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    entries = dict.fromkeys(specials + WORDS + LETTERS + [f"##{suffix}" for suffix in SUFFIXES])
    entries.update(dict.fromkeys(f"##{letter}" for letter in LETTERS if len(entries) < 140))
    unknown = "<unk>" if is_roberta else "[UNK]"
    tokenizer = Tokenizer(models.WordPiece({entry: i for i, entry in enumerate(entries)}, unk_token=unknown))
    tokenizer.add_special_tokens(specials)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if is_roberta:
        tokenizer.post_processor = processors.RobertaProcessing(sep=("</s>", 2), cls=("<s>", 0))
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"unk_token": unknown}, file)
    return tokenizer


def write_sentence_transformers(folder, pooling, normalize):
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")] + ([("2_Normalize", "Normalize")] if normalize else [])
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    with open(os.path.join(folder, "modules.json"), "w") as file:
        json.dump(modules, file)
    os.makedirs(os.path.join(folder, "1_Pooling"))
    modes = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}
    with open(os.path.join(folder, "1_Pooling", "config.json"), "w") as file:
        json.dump({f"pooling_mode_{name}": mode == pooling for mode, name in modes.items()}, file)


def spread(model):
    """Weights large enough that attention is peaked and every part shows; norms and biases are not trivial."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "LayerNorm.weight" in name:
                weight.copy_(1 + 0.3 * torch.randn_like(weight))
            elif weight.dim() == 1:
                weight.copy_(0.2 * torch.randn_like(weight))
            elif "embeddings" in name:
                weight.copy_(0.7 * torch.randn_like(weight))
            else:
                weight.copy_(2.0 * torch.randn_like(weight) / weight.shape[1] ** 0.5)


@torch.no_grad()
def answer(model, ids, types, options):
    inputs = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}
    if "pooling" not in options:
        score = model(**inputs).logits[0]
        return score if options.get("activation") == IDENTITY else torch.sigmoid(score)
    states = model(**inputs).last_hidden_state[0]
    pooled = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[options["pooling"]]
    return torch.nn.functional.normalize(pooled, dim=0) if options["normalize"] else pooled


def write_variant(name):
    kind, config, storage, options = VARIANTS[name]
    torch.manual_seed(sum(name.encode()))
    numbers = random.Random(name)
    folder = os.path.join(ROOT, "fixtures", f"tiny-{name}")
    shutil.rmtree(folder, ignore_errors=True)
    model = kind(config).eval()
    spread(model)
    model.to(storage).save_pretrained(folder)
    is_roberta = name.startswith("roberta")
    tokenizer = write_tokenizer(folder, is_roberta)
    if "pooling" in options:
        write_sentence_transformers(folder, options["pooling"], options["normalize"])
    if "activation" in options:
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            fields = json.load(file)
        fields["sentence_transformers"] = {"activation_fn": options["activation"]}
        with open(path, "w") as file:
            json.dump(fields, file, indent=2)
    model = kind.from_pretrained(folder, torch_dtype=torch.float32).eval()
    longest = config.max_position_embeddings - (2 if is_roberta else 0)
    items = []
    for length in [1, 2, 31, 32, 33, longest]:
        # Not the padding's id: RoBERTa would give it no position.
        ids = [numbers.randrange(4, config.vocab_size) for _ in range(length)]
        types = [int(i >= length // 2) * (config.type_vocab_size - 1) for i in range(length)]
        items.append({"model": name, "ids": ids, "types": types, "output": row(answer(model, ids, types, options))})
    for pair in [("The cat sat.", None), ("Unbelievable, the bird!", "What is a DOG flying in?"), ("é 中文", "")]:
        encoded = tokenizer.encode(*[text for text in pair if text is not None])
        ids, types = encoded.ids, encoded.type_ids
        output = row(answer(model, ids, types if config.type_vocab_size > 1 else [0] * len(ids), options))
        items.append({"model": name, "texts": [text for text in pair if text is not None], "ids": ids, "types": types, "output": output})
    return items


MINILM_TEXTS = [
    "The cat sits outside.",
    "A man is playing guitar.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "How many people live in Berlin?",
    "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    "x",
    "",
    "naïve café — “quotes”, 3.14 & <b>tags</b> @user #tag",
    "東京は日本の首都です。",
    "Pneumonoultramicroscopicsilicovolcanoconiosis internationalisation",
    "\tWhite   space\nand\u00a0more\u200b ",
    "emoji 😀 and ｆｕｌｌ ｗｉｄｔｈ",
    " ".join(["An engine that serves many users of one model from one machine."] * 16),
]


def write_minilm(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, torch_dtype=torch.float32).eval()
    items = []
    for text in MINILM_TEXTS:
        encoded = tokenizer(text)
        ids, types = encoded["input_ids"], encoded["token_type_ids"]
        items.append({"text": text, "ids": ids, "output": row(answer(model, ids, types, {"pooling": "mean", "normalize": True}))})
    write_json(os.path.join(ROOT, "goldens", "minilm.json"), {"model": "all-MiniLM-L6-v2"}, "texts", items)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minilm")
    arguments = parser.parse_args()
    items = [item for name in VARIANTS for item in write_variant(name)]
    write_json(os.path.join(ROOT, "goldens", "encoders.json"), {"reference": "transformers, float32"}, "cases", items)
    if arguments.minilm:
        write_minilm(arguments.minilm)


if __name__ == "__main__":
    main()
