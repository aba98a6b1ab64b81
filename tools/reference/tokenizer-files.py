"""
Tokenizers without a tokenizer.json: what transformers and SentencePiece make of their files.

    python tools/reference/tokenizer-files.py

writes test/fixtures/tokenizer-files/tokenizer.model (a SentencePiece BPE trained here) and test/goldens/tokenizer-files.json: ids of
texts by SentencePiece, and by the classes GPT2Tokenizer and Qwen2Tokenizer from the vocabulary and merges of
test/fixtures/tiny-mistral/tokenizer.json, written as vocab.json and merges.txt. The files of the test are the same.
"""

import json
import os
import tempfile

import sentencepiece
import transformers

from tiny_tokenizer import TEXT

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test")
TEXTS = [
    "",
    " ",
    "The geese wait",
    "  two spaces,  and more   ",
    "It's 1234 o'clock: we'll see.",
    "line one\nline two\n\n  indented\t\ttabs",
    "Größe, naïve, 東京 and 🪿",
    "<|im_start|>user\nHello<|im_end|>",
    "<s>not BOS</s>",
    "a<unk>b <sep>c",
    "ﬁ e\u0301 ½",
]


def sentence_piece():
    folder = os.path.join(TEST, "fixtures", "tokenizer-files")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/text", "w", encoding="utf-8") as file:
            file.write(TEXT)
        sentencepiece.SentencePieceTrainer.train(
            input=f"{directory}/text",
            model_prefix=f"{directory}/tokenizer",
            model_type="bpe",
            vocab_size=420,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            user_defined_symbols=["<sep>"],
            minloglevel=2,
        )
        with open(f"{directory}/tokenizer.model", "rb") as file:
            model = file.read()
    with open(f"{folder}/tokenizer.model", "wb") as file:
        file.write(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/tokenizer.model", "wb") as file:
            file.write(model)
        with open(f"{directory}/tokenizer_config.json", "w", encoding="utf-8") as file:
            json.dump({"tokenizer_class": "LlamaTokenizer"}, file)
        llama = transformers.LlamaTokenizer.from_pretrained(directory)
    return {
        "SentencePiece": [{"text": text, "ids": processor.encode(text)} for text in TEXTS],
        "LlamaTokenizer": [{"text": text, "ids": llama(text, add_special_tokens=False)["input_ids"]} for text in TEXTS],
    }


def by_class(name):
    with open(os.path.join(TEST, "fixtures", "tiny-mistral", "tokenizer.json"), encoding="utf-8") as file:
        own = json.load(file)["model"]
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/vocab.json", "w", encoding="utf-8") as file:
            json.dump(own["vocab"], file)
        with open(f"{directory}/merges.txt", "w", encoding="utf-8") as file:
            file.write("#version: 0.2\n")
            file.writelines(f"{merge if isinstance(merge, str) else ' '.join(merge)}\n" for merge in own["merges"])
        special = {str(own["vocab"][token]): {"content": token, "special": True} for token in ("<|im_start|>", "<|im_end|>")}
        with open(f"{directory}/tokenizer_config.json", "w", encoding="utf-8") as file:
            json.dump({"tokenizer_class": name, "added_tokens_decoder": special}, file)
        tokenizer = getattr(transformers, name).from_pretrained(directory)
    return [{"text": text, "ids": tokenizer(text, add_special_tokens=False)["input_ids"]} for text in TEXTS]


def main():
    golden = {
        "madeBy": f"tools/reference/tokenizer-files.py, transformers {transformers.__version__}, sentencepiece {sentencepiece.__version__}",
        **sentence_piece(),
        "GPT2Tokenizer": by_class("GPT2Tokenizer"),
        "Qwen2Tokenizer": by_class("Qwen2Tokenizer"),
    }
    with open(os.path.join(TEST, "goldens", "tokenizer-files.json"), "w", encoding="utf-8") as file:
        lines = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in golden.items())
        file.write(f"{{{lines}}}\n")


if __name__ == "__main__":
    main()
