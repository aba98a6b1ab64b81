"""Writes test/goldens/tokenizer-smollm2.json: what Hugging Face's own libraries make of tricky texts and chats.

    pip install tokenizers transformers gguf
    python tools/reference/tokenizer-goldens.py MODEL_FOLDER [OUTPUT]

MODEL_FOLDER holds SmolLM2's tokenizer.json and its GGUF (for the chat template).
"""

import json
import sys
from pathlib import Path

from gguf import GGUFReader
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "", " ", "  ", "   ", "\n", "\r\n", "\t", "\t\t\n", "\n\n\n", " \n \n", "\u00a0", "\u0085", "\ufeff", "\u2028",
    "Hello", " Hello", "  Hello", "Hello ", "Hello  world", "Hello, world!", "hello\nworld", "hello\r\nworld\r\n",
    "12345", " 12345", "1 22 333 4444", "3.14159", "-1,000,000.50", "1e-10", "0x7FFF", "2024-02-29T12:34:56Z",
    "\u0663\u0664\u0665", " \u0967\u0968\u0969", "x\u00b2 + y\u00b3 = \u00bd", "\u2167 \u2460\u2461", "\uff11\uff12\uff13",
    "I'm you're he'll we've they'd it's don't", "I'M YOU'RE HE'LL", "\u2019s \u2019t", "rock'n'roll",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u05e9\u05dc\u05d5\u05dd", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5", "Xin ch\u00e0o th\u1ebf gi\u1edbi", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0",
    "caf\u00e9", "cafe\u0301", "Z\u0351\u036b\u0343\u036aA\u0335L\u0321G\u0308O\u0334", "\u00c5ngstr\u00f6m \u212b", "stra\u00dfe", "\ufb01ne \ufb02ow",
    "\U0001f600", " \U0001f600\U0001f601", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\U0001f44d\U0001f3fd", "\u2764\ufe0f",
    "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001d54f \U0001d4d0", "\U00020000\U0002a6d6", "\u200b\u200c\u200d", "\u202eabc\u202c",
    "\x00", "a\x00b", "\x01\x02\x1f\x7f", "\u0080\u009f", "\ufffd", "\ufffe\uffff", "\ue000\uf8ff", "\U0010ffff",
    "def f(x):\n    return x ** 2\n", "if (a && b) {\n\treturn a?.b ?? c;\n}", "```python\nprint('hi')\n```\n", "SELECT * FROM t WHERE a='b';",
    "#include <stdio.h>\nint main(void) { return 0; }", "<html><body class=\"x\">&amp;</body></html>", "{\"a\": [1, 2.5, null, true]}", "a/b\\c|d~e`f^g",
    "https://example.com/path?q=1&r=%20#frag", "user@example.com", "C:\\Users\\x", "___init___ --flag=value", "$100 \u20ac50 \u00a330 \u00a5",
    "a" * 300, "ab " * 60, "=" * 80, "-" * 33 + "\n", " " * 70 + "x", "\n" * 40, "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaftskapit\u00e4n",
    "ThisIsCamelCaseAndSNAKE_CASE_words", "MiXeD cAsE tExT", "...!!!???", "\u2014\u2013\u2026\u201c\u201d\u2018\u2019", "(a)[b]{c}<d>", " ,a ;b :c",
    "<|im_start|>", "<|im_start|>user\nHi<|im_end|>\n", "a<|endoftext|>b", "<|im_start|", "<|im_start|><|im_start|>", " <|im_end|> ", "<repo_name>x<file_sep>y",
    "<reponame", "<|im_<|im_end|>start|>", "Never gonna <|im_end|>give\u4f60<|im_start|>\u597d", "\u00a0\u2003 wide\u3000spaces", "tab\tnew\x0bvert\x0cform",
    "\u0e19\u0e49\u0e33 \u0e01\u0e33", "\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd", "\u1019\u103c\u1014\u103a\u1019\u102c", "\u13e3\u13b3\u13a9", "\u16a0\u16a2\u16a6", "\U00012000\U00012031",
]  # fmt: skip

CHATS = [
    [{"role": "user", "content": "Hi there"}],
    [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": "  Where is the ship?  \n"}],
    [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "\u4f60\u597d \U0001f600\r\nand 12345"},
    ],
    [{"role": "user", "content": ""}],
    [{"role": "user", "content": "Say A"}, {"role": "assistant", "content": "A, B, C and"}],
]


def chat_template(folder: Path) -> str:
    reader = GGUFReader(next(folder.glob("*.gguf")))
    return reader.fields["tokenizer.chat_template"].contents()


def main() -> None:
    folder = Path(sys.argv[1])
    output = Path(sys.argv[2] if len(sys.argv) > 2 else "test/goldens/tokenizer-smollm2.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    template = chat_template(folder)
    chat = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        chat_template=template,
    )
    texts = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        texts.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    chats = []
    for messages in CHATS:
        for options in ({}, {"add_generation_prompt": True}, {"continue_final_message": True}):
            if "continue_final_message" in options and messages[-1]["role"] != "assistant":
                continue
            rendered = chat.apply_chat_template(messages, tokenize=False, **options)
            ids = tokenizer.encode(rendered, add_special_tokens=False).ids
            chats.append({"messages": messages, "options": options, "rendered": rendered, "ids": ids})
    output.parent.mkdir(parents=True, exist_ok=True)
    lines = lambda items: ",\n".join("    " + json.dumps(item) for item in items)  # noqa: E731
    output.write_text(
        '{\n  "chatTemplate": %s,\n  "texts": [\n%s\n  ],\n  "chats": [\n%s\n  ]\n}\n'
        % (json.dumps(template), lines(texts), lines(chats))
    )
    print(f"{output}: {len(texts)} texts, {len(chats)} chats")


main()
