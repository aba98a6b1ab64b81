"""Writes test/goldens/gguf-tokenizers.json: tokenizers of the kinds bert, t5 and gemma4 of GGUF files, and what Hugging Face's library makes of texts.

    pip install tokenizers
    python tools/reference/gguf-tokenizers.py

Each kind is a tiny tokenizer that is trained here with the components that tokenizer.json has of BERT, T5 and Gemma. Its metadata is written as
llama.cpp's converter does: WordPiece without ## and with a mark in front of the beginnings of words, Unigram with scores, Gemma's pieces with their merges.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tiny_tokenizer import TEXT

TEXTS = [
    "",
    " ",
    "The geese wait",
    "  two spaces,  and more   ",
    "It's 1234 o'clock: we'll see.",
    "line one\nline two\n\n  indented\t\ttabs",
    "Größe, naïve, 東京 and \U0001fabf",
    "CAFÉ cafe\u0301 [UNK] ##ing",
    "[CLS] not a mark [SEP]",
    "a</s>b <bos>c",
    "zzzzqqqq \u0e01\u0e02 x" + "y" * 120,
]
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def by_id(tokenizer: Tokenizer) -> list[str]:
    return [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda one: one[1])]


def bert() -> tuple[Tokenizer, dict]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.train_from_iterator(TEXT.split("\n"), trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokens = by_id(tokenizer)
    types = [CONTROL if token in special else NORMAL for token in tokens]
    phantom = [token if type == CONTROL else token[2:] if token.startswith("##") else "\u2581" + token for token, type in zip(tokens, types)]
    return tokenizer, {"tokens": phantom, "types": types, "ids": {"cls": 2, "seperator": 3, "unknown": 1, "padding": 0}}


def t5() -> tuple[Tokenizer, dict]:
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(left=False, right=True), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXT.split("\n"), trainer)
    pieces = json.loads(tokenizer.to_str())["model"]["vocab"]
    made = Tokenizer(models.Unigram([tuple(piece) for piece in pieces], 2, False))
    # As SpmConverter of transformers has them for a model that removes extra spaces.
    from tokenizers import Regex

    made.normalizer = normalizers.Sequence([normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.add_special_tokens(special)
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    types = [UNKNOWN if token == "<unk>" else CONTROL if token in special else NORMAL for token, _ in pieces]
    tokens = [token for token, _ in pieces]
    ids = {"eos": 1, "unknown": 2, "padding": 0}
    flags = {"add_space_prefix": True, "remove_extra_whitespaces": True, "add_bos_token": False, "add_eos_token": True}
    return made, {"tokens": tokens, "types": types, "scores": [score for _, score in pieces], "ids": ids, "flags": flags}


def gemma4() -> tuple[Tokenizer, dict]:
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    learned = Tokenizer(models.BPE(unk_token="<unk>"))
    learned.normalizer = normalizers.Replace(" ", "\u2581")
    learned.train_from_iterator(TEXT.split("\n"), trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False))
    model = json.loads(learned.to_str())["model"]
    words = [*special, *bytes_, *(token for token, _ in sorted(model["vocab"].items(), key=lambda one: one[1]) if token != "<unk>"), "\n", "\n\n"]
    merges = [tuple(merge) for merge in model["merges"]] + [("\n", "\n")]
    vocab = {token: id for id, token in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    types = [UNKNOWN if token == "<unk>" else CONTROL if token in special else BYTE if token in bytes_ else NORMAL for token in words]
    ids = {"bos": 2, "eos": 1, "unknown": 3, "padding": 0}
    flags = {"add_space_prefix": False, "add_bos_token": True}
    return tokenizer, {"tokens": words, "types": types, "merges": [" ".join(merge) for merge in merges], "ids": ids, "flags": flags}


def main() -> None:
    kinds = {}
    for make in (bert, t5, gemma4):
        tokenizer, metadata = make()
        texts = []
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            texts.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
        kinds[make.__name__] = {"metadata": metadata, "texts": texts}
    target = Path(__file__).parents[2] / "test" / "goldens" / "gguf-tokenizers.json"
    lines = [f"{json.dumps(name)}: {json.dumps(kind, ensure_ascii=False, separators=(',', ':'))}" for name, kind in kinds.items()]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
