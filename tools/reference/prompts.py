"""The prompts of the SmolLM2 goldens: chat and plain, 1 to 1500 tokens, Unicode, code, digits."""

SUBJECTS = ["The harbour", "A river", "The old library", "Every market", "The night train", "A garden", "The bridge"]
VERBS = ["opens before", "is named after", "lies north of", "was rebuilt beside", "waits for", "is older than"]
OBJECTS = ["the stone tower", "its first keeper", "the winter fair", "a quiet square", "the last ferry", "two hills"]


def long_text(sentences):
    """Plain English that never repeats a sentence, so that attention has something to find."""
    lines = []
    for i in range(sentences):
        subject, verb, place = SUBJECTS[i % 7], VERBS[(i * 5 + i // 7) % 6], OBJECTS[(i * 11 + i // 42) % 6]
        lines.append(f"{subject} {verb} {place}, and in the year {1300 + 7 * i} it was counted as number {i + 1}.")
    return " ".join(lines)


CODE = """def quicksort(items):
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    left = [x for x in items if x < pivot]
"""

C_CODE = """#include <stdio.h>

int main(int argc, char **argv) {
\tfor (int i = 0; i < argc; ++i) {
\t\tprintf("%d: %s\\n", i, argv[i]);
"""


def user(text):
    return [{"role": "user", "content": text}]


PROMPTS = [
    {"name": "one token", "ids": [504]},
    {"name": "two tokens", "text": "Once upon"},
    {"name": "plain story", "text": "Once upon a time, in a small village by the sea,"},
    {"name": "plain fact", "text": "The three primary colours are"},
    {"name": "plain list", "text": "Monday, Tuesday, Wednesday,"},
    {"name": "digits", "text": "1 2 3 5 8 13 21 34 55 89 144 233"},
    {"name": "long number", "text": "The first digits of pi are 3.14159265358979323846264338327950288419716939937510"},
    {"name": "dates", "text": "2023-12-31T23:59:59Z is one second before 2024-"},
    {"name": "python", "text": CODE},
    {"name": "c with tabs", "text": C_CODE},
    {"name": "json", "text": '{"name": "skein", "version": "0.1.0", "tags": ["serving", "batching"], "count":'},
    {"name": "html", "text": "<!DOCTYPE html>\n<html>\n  <head>\n    <title>"},
    {"name": "french", "text": "Où est la bibliothèque ? Elle est située à côté de l'église, près du"},
    {"name": "german", "text": "Die größten Städte in Österreich heißen Wien, Graz und"},
    {"name": "japanese", "text": "東京は日本の首都です。京都は"},
    {"name": "cyrillic", "text": "Съешь же ещё этих мягких французских булок, да выпей"},
    {"name": "emoji", "text": "🦢🦆 Geese fly in a skein 👩‍👩‍👧‍👦 — naïve café ½ ﬁ ﷽ "},
    {"name": "white space", "text": "a  b   c\t\td\n\n\ne \r\n f "},
    {"name": "chat capital", "messages": user("What is the capital of France?"), "count": 40},
    {"name": "chat sum", "messages": user("What is 17 + 25? Answer with the number only."), "count": 40},
    {"name": "chat poem", "messages": user("Write a short poem about wild geese in autumn."), "count": 64},
    {
        "name": "chat with system",
        "messages": [
            {"role": "system", "content": "You are a terse assistant. Answer in one sentence."},
            {"role": "user", "content": "Why is the sky blue?"},
        ],
        "count": 64,
    },
    {
        "name": "chat turns",
        "messages": [
            {"role": "user", "content": "Name a fruit."},
            {"role": "assistant", "content": "Apple."},
            {"role": "user", "content": "And another one, please, with its colour."},
        ],
    },
    {"name": "chat code", "messages": user("Write a JavaScript function that reverses a string."), "count": 64},
    {"name": "chat unicode", "messages": user("Translate to English: « Les oies sauvages volent à l'automne. »")},
    {"name": "long 130", "text": long_text(5)},
    {"name": "long 400", "text": long_text(16)},
    {"name": "long 800", "messages": user(long_text(30) + " How many places are named above?")},
    {"name": "long 1500", "text": long_text(58)},
]
