"""Writes test/goldens/pre-tokenizers.json: the words into which Hugging Face's tokenizers cut tricky texts by the patterns of GGUF's
pre-tokenizers.

    pip install tokenizers
    npx tsx -e "import { knownPreTokenizers as names, preTokenization as of } from './models/tokenizer/gguf-pre-tokenizers.ts';
      console.log(JSON.stringify(names.map((name) => [name, of(name).preTokenizer])))" | python tools/reference/pre-tokenizers.py
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer

TEXTS = [
    "I'm you're he'll WE'VE they'd it'S don'T \u017f's",
    "  Hello   world,  a1 22 333 4444 55555 -1,000,000.50\t\tx \n\n y\r\n  z   ",
    "def f(x):\n    return x ** 2  # ok?\n\n\tif (a&&b) { c[1]+=2; }/",
    "ThisIsCamelCase SNAKE_CASE \u01c5x \u00c5ngstr\u00f6m stra\u00dfe caf\u00e9 cafe\u0301 \u0386\u0388 \u1f5f\u03ce \u01bb\u01c0\u0294",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002 \u65e5\u672c\u8a9e\u306e\u6587\u7ae0 \u30ab\u30bf\u30ab\u30ca123 \ud55c\uad6d\uc5b4 \u3105\u3106 \uff01\uff02 \uff5e \u2018\u2019\u201c\u201d",
    "\u0928\u092e\u0938\u094d\u0924\u0947\u0964 \u0645\u0631\u062d\u0628\u0627\u060c \u05e9\u05dc\u05d5\u05dd \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0663\u0664\u0665 x\u00b2 \u00bd \u2167",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f \U00010400\U00010428 \U0001d54f",
    "(word) |x| foo.bar! $100 \u20ac50 <|im_start|> [a]{b} ~^`=+\\/ \u2026 \u2014\u3000\u00a0\u0085 end  ",
]


def main() -> None:
    families: dict[str, list[str]] = {}
    for name, pre_tokenizer in json.load(sys.stdin):
        families.setdefault(json.dumps(pre_tokenizer), []).append(name)
    words = {}
    for pre_tokenizer, names in families.items():
        model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
        tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": json.loads(pre_tokenizer), "model": model}))
        words[names[0]] = [" ".join(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)) for text in TEXTS]
    target = Path(__file__).parents[2] / "test" / "goldens" / "pre-tokenizers.json"
    target.write_text(json.dumps({"texts": TEXTS, "words": words}, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
