"""A byte-level BPE tokenizer of a few hundred tokens with ChatML specials, trained on the text below."""

import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = """A skein is geese in flight: each joins and leaves the formation while it moves. The request waits in the queue,
then the scheduler gives it blocks and the loop gives it tokens. Where is the capital of the north? What is the answer?
The quick brown fox jumps over the lazy dog. She sells sea shells by the shore; he counts one, two, three, four, five."""

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train(vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    assert tokenizer.get_vocab_size() == vocab_size, tokenizer.get_vocab_size()
    return tokenizer


def tokenizer_config():
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 256,
        "chat_template": CHAT_TEMPLATE,
    }


def write(directory, vocab_size):
    train(vocab_size).save(f"{directory}/tokenizer.json")
    with open(f"{directory}/tokenizer_config.json", "w", encoding="utf-8") as file:
        json.dump(tokenizer_config(), file, indent=2)
        file.write("\n")
