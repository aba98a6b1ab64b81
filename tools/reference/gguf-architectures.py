"""
The tiny models of architectures.py as GGUF files, converted by llama.cpp's own converter, weights in bf16.

    python tools/reference/gguf-architectures.py LLAMA_CPP_DIR [NAME ...]

writes test/fixtures/tiny-NAME-gguf/tiny-NAME.gguf. Names of tensors and keys, the order of rows and what becomes of norms are
the converter's; only the tokenizer is written by tiny_gguf.py, since the converter knows no hash of it.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

LLAMA_CPP = os.path.abspath(sys.argv[1])
sys.path.insert(0, LLAMA_CPP)
sys.path.insert(0, os.path.join(LLAMA_CPP, "gguf-py"))

import gguf  # noqa: E402
from conversion import get_model_class  # noqa: E402
from conversion.base import ModelBase  # noqa: E402
from tiny_gguf import add_tokenizer  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "fixtures")
# Mistral's files are Llama's, of which tiny-gguf is one.
NAMES = ["qwen2", "qwen3", "phi3", "gemma2", "gemma3", "gpt2", "qwen3moe", "mixtral"]


def convert(name):
    directory = Path(ROOT) / f"tiny-{name}"
    target = Path(ROOT) / f"tiny-{name}-gguf"
    target.mkdir(exist_ok=True)
    config = ModelBase.load_hparams(directory, False)
    model_class = get_model_class(config["architectures"][0])
    ids = {key: config[key] for key in ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")}
    model_class.set_vocab = lambda self: add_tokenizer(self.gguf_writer, SimpleNamespace(**ids))
    file = target / f"tiny-{name}.gguf"
    model_class(directory, gguf.LlamaFileType.MOSTLY_BF16, file).write()
    os.chmod(file, 0o644)


for wanted in sys.argv[2:] or NAMES:
    convert(wanted)
