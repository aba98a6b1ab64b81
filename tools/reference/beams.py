"""
What Hugging Face transformers' beam search answers.

    python tools/reference/beams.py [SMOLLM2_DIR]          # with a directory: that model's, see smollm2.py

writes test/goldens/beams.json from test/fixtures/tiny-gqa and tiny-bias in float32: several widths, length penalties, the
three meanings of early_stopping, ends that come early, and processors. A case is kept only where the same search in float64
finds the same beams, so that no case hangs on rounding. With a model's directory it writes test/goldens/beams-smollm2.json.
"""

import glob
import os
import sys

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from golden import significant, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
STOPPING = [True, False, "never"]
WIDTHS = [2, 3, 4, 5, 8]
PENALTIES = [0.0, 1.0, -1.0, 0.6, 2.0]
PROCESSORS = [
    {},
    {"repetition_penalty": 1.3},
    {"no_repeat_ngram_size": 2},
    {"min_new_tokens": 9},
    {"bad_words": True},
    {"sequence_bias": True},
    {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "bad_words": True, "min_new_tokens": 4},
]


@torch.no_grad()
def search(model, prompt, case, most):
    """The beams' generated tokens, the best first, and their scores."""
    processors = dict(case["processors"])
    if "bad_words" in processors:
        processors["bad_words_ids"] = processors.pop("bad_words")
    if "sequence_bias" in processors:
        processors["sequence_bias"] = {(token,): bias for token, bias in processors["sequence_bias"]}
    output = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False,
        num_beams=case["width"],
        num_return_sequences=case["width"],
        length_penalty=case["lengthPenalty"],
        early_stopping=case["earlyStopping"],
        max_new_tokens=most,
        eos_token_id=case["ends"] or None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
        **processors,
    )
    lengths = (output.beam_indices >= 0).sum(1).tolist()
    beams = [
        sequence[len(prompt) : len(prompt) + length].tolist()
        for sequence, length in zip(output.sequences, lengths)
    ]
    return beams, [significant(score) for score in output.sequences_scores]


def ends_of(model, prompt, case, most, numbers):
    """Tokens that beams draw early: as ends they make hypotheses of many lengths."""
    beams, _ = search(model, prompt, {**case, "ends": []}, most)
    early = sorted({token for beam in beams for token in beam[1:7]})
    picked = [early[int(torch.randint(len(early), (1,), generator=numbers))] for _ in range(1 + case["width"] % 2)]
    return sorted(set(picked))


def cases_of(model, most):
    numbers = torch.Generator().manual_seed(7)
    token = lambda: int(torch.randint(3, model.config.vocab_size, (1,), generator=numbers))
    index = 0
    for width in WIDTHS:
        for stopping in STOPPING:
            for processors in PROCESSORS:
                penalty = PENALTIES[index % len(PENALTIES)]
                prompt = [token() for _ in range([1, 5, 31, 32, 45][index % 5])]
                processors = dict(processors)
                if "bad_words" in processors:
                    processors["bad_words"] = [[token()], [prompt[-1], token()], [token(), token()]]
                if "sequence_bias" in processors:
                    processors["sequence_bias"] = sorted({token(): 2.5, token(): -3.0}.items())
                case = {
                    "width": width,
                    "lengthPenalty": penalty,
                    "earlyStopping": stopping,
                    "processors": processors,
                }
                case["ends"] = [] if index % 6 == 5 else ends_of(model, prompt, case, most, numbers)
                if "min_new_tokens" in processors and not case["ends"]:
                    processors.pop("min_new_tokens")
                index += 1
                # transformers looks at a bad word only where there are as many tokens as it has; one less
                # shows it.
                if len(prompt) > 1 or "bad_words" not in processors:
                    yield prompt, case


def golden(name, model, exact, prompt, case, most):
    beams, scores = search(model, prompt, case, most)
    if exact is not None and search(exact, prompt, case, most)[0] != beams:
        return None
    return {"model": name, "promptIds": prompt, "maxNewTokens": most, **case, "beams": beams, "scores": scores}


def tiny():
    items, dropped = [], 0
    for name in ("tiny-gqa", "tiny-bias"):
        path = os.path.join(ROOT, "fixtures", name)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
        exact = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float64, attn_implementation="eager").eval()
        for prompt, case in cases_of(model, 20):
            item = golden(name, model, exact, prompt, case, 20)
            if item is None:
                dropped += 1
            else:
                items.append(item)
    header = {"madeBy": "tools/reference/beams.py, float32"}
    write_json(os.path.join(ROOT, "goldens", "beams.json"), header, "prompts", items)
    early = sum(any(len(beam) < 20 for beam in item["beams"]) for item in items)
    print(len(items), "cases,", dropped, "dropped,", early, "with a beam that ended early")


def smollm2(path):
    (file,) = glob.glob(os.path.join(path, "*.gguf"))
    model = AutoModelForCausalLM.from_pretrained(path, gguf_file=os.path.basename(file), dtype=torch.float32).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(path, "tokenizer.json"))
    items = []
    for text, width, penalty, stopping in [
        ("The capital of France is", 4, 1.0, False),
        ("<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n", 3, 0.0, "never"),
        ("<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n", 2, 1.0, True),
    ]:
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        case = {
            "width": width,
            "lengthPenalty": penalty,
            "earlyStopping": stopping,
            "processors": {},
            "ends": [tokenizer.convert_tokens_to_ids("<|im_end|>")],
        }
        items.append(golden("smollm2", model, None, prompt, case, 16))
        print([tokenizer.decode(beam) for beam in items[-1]["beams"]])
    header = {"madeBy": "tools/reference/beams.py MODEL_DIR, float32"}
    write_json(os.path.join(ROOT, "goldens", "beams-smollm2.json"), header, "prompts", items)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        smollm2(sys.argv[1])
    else:
        tiny()
