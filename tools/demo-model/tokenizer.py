"""Trains the byte-level BPE of the demo model on its corpus and writes the files that say how a conversation is encoded.

    python3 tools/demo-model/tokenizer.py corpus.jsonl FOLDER [--vocabulary 2048]
"""

import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def texts(path):
    for line in open(path):
        line = json.loads(line)
        if "text" in line:
            yield line["text"]
        for message in line.get("messages", []):
            yield message["role"] + "\n" + message["content"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vocabulary", type=int, default=2048)
    flags = parser.parse_args()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=flags.vocabulary, special_tokens=[END_OF_TEXT, TURN, END_OF_TURN], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts(flags.corpus), trainer)
    flags.folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(flags.folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": END_OF_TURN, "pad_token": END_OF_TEXT,
              "model_max_length": 1024, "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE}
    (flags.folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
