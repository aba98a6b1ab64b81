"""Writes test/goldens/pre-tokenizers.json: the words into which Hugging Face's tokenizers cut tricky texts by the patterns of GGUF's
pre-tokenizers, or by those of the models' own tokenizers where ours are written otherwise.

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
    " 1234567 12345a 12345\u00b2 \u0661\u0662\u0663\u0664 20\u3007\u4e94\u5e74\u3007\u3007\u3007\u3007 \u2167\u2167\u2167\u2167 7" + " " * 700 + "x" + " " * 37 + "\n",
    "one two three  four ca\u0301t a\u0301 \u0301b \u4e2d\u6587abc\u6df7\u5408 <sentinel:12>IMGIMGABIZ IMGIMGABCDEZ\ta    b \u0e01\u0e02 \u1780 !\u2e80\u3005",
]


def split(pattern: str) -> dict:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def sequence(*parts: dict, use_regex: bool = False) -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "Sequence", "pretokenizers": [*parts, byte_level]}


ENDING = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX, UPPER, LOWER = "[^\\r\\n\\p{L}\\p{N}]?", "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
SYMBOLS = " ?[^\\s\\p{L}\\p{N}]+"

# As the models' own files have them; Kimi's is tiktoken's pattern in its Python.
ORIGINALS = {
    "exaone-moe": sequence(
        split(
            f"{ENDING}|{PREFIX}(?:\\p{{L}}\\p{{M}}*(?: \\p{{L}}\\p{{M}}*)*)+|\\p{{N}}|{SYMBOLS}[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
        )
    ),
    "jais-2": sequence(
        split(
            f"{ENDING}|{PREFIX}\\p{{L}}+|\\p{{N}}{{1,3}}|{SYMBOLS}[\\r\\n]*|\\s*[\\r\\n]+|"
            + "".join(f"\\s{{{count}}}(?!\\S)|" for count in (512, 256, 128, 64, 32, 16, 8, 4, "1,2"))
            + "\\s{1}"
        )
    ),
    "kimi-k2": sequence(
        split(
            f"[\\p{{Han}}]+|{PREFIX}{UPPER}*{LOWER}+{ENDING}?|{PREFIX}{UPPER}+{LOWER}*{ENDING}?|\\p{{N}}{{1,3}}|"
            f"{SYMBOLS}[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
        )
    ),
    "chameleon": sequence(
        split("<sentinel:[0-9]+>"),
        split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
        split("([\\t\\n]|    |  )"),
        {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Isolated"},
        use_regex=True,
    ),
}


def main() -> None:
    families: dict[str, list[str]] = {}
    for name, pre_tokenizer in json.load(sys.stdin):
        families.setdefault(json.dumps(pre_tokenizer), []).append(name)
    words = {}
    for pre_tokenizer, names in families.items():
        model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
        tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": ORIGINALS.get(names[0], json.loads(pre_tokenizer)), "model": model}))
        words[names[0]] = [" ".join(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)) for text in TEXTS]
    target = Path(__file__).parents[2] / "test" / "goldens" / "pre-tokenizers.json"
    target.write_text(json.dumps({"texts": TEXTS, "words": words}, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
