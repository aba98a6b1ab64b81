"""
What Hugging Face transformers' own logits processors leave of given logits.

    python tools/reference/processors.py

writes test/goldens/processors.json. Each case is one next token after a prompt and some generated tokens: the log-probs
of all tokens after the processors that are no truncation, and the tokens that are left of them after temperature, top-k,
top-p and min-p, with their probabilities. Which processors there are, and in which order, is what `generate` itself
would make of a GenerationConfig. transformers has no presence and frequency penalty: for these the formula of OpenAI's
documentation stands here, between the repetition penalty and the bans.
"""

import os

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from golden import significant, write_json

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "test", "goldens", "processors.json")
VOCAB = 64
END = 2
# The second row is flatter. No two values are equal: at the border of top_k transformers keeps all that are.
SPREADS = [2.0, 0.7, 1.5]
PROMPT = [5, 9, 3, 7, 9, 3, 11, 20]
GENERATED = [7, 9, 3, 30, 30, 5, 9]

WARPERS = {"temperature", "top_k", "top_p", "min_p"}
# Names of a GenerationConfig, and two of OpenAI's.
CASES = {
    "temperature": {"temperature": 0.6},
    "a high temperature": {"temperature": 2.5},
    "top_k": {"top_k": 9},
    "top_p": {"top_p": 0.7},
    "a small top_p": {"top_p": 0.1},
    "min_p": {"min_p": 0.08},
    "all truncations": {"temperature": 1.4, "top_k": 20, "top_p": 0.85, "min_p": 0.05},
    "top_k and top_p": {"top_k": 6, "top_p": 0.8},
    "temperature and min_p": {"temperature": 1.8, "min_p": 0.3},
    "repetition_penalty": {"repetition_penalty": 1.35},
    "a repetition_penalty below 1": {"repetition_penalty": 0.7},
    "min_length not reached": {"min_new_tokens": len(GENERATED) + 1},
    "min_length reached": {"min_new_tokens": len(GENERATED)},
    "no_repeat_ngram_size 1": {"no_repeat_ngram_size": 1},
    "no_repeat_ngram_size 2": {"no_repeat_ngram_size": 2},
    "no_repeat_ngram_size 3": {"no_repeat_ngram_size": 3},
    "bad words": {"bad_words_ids": [[12], [9, 40], [5, 9, 41], [3, 9, 42], [30, 5, 9, 43], [9]]},
    "sequence bias of single tokens": {"sequence_bias": [[[4], 3.5], [[8], -2.25], [[END], 1.0]]},
    "a bias on every token": {"sequence_bias": [[[t], round(1.5 * (-1) ** t * (t % 7) / 7, 3)] for t in range(VOCAB)]},
    "presence_penalty": {"presence_penalty": 0.9},
    "frequency_penalty": {"frequency_penalty": 0.4},
    "presence and frequency penalties below 0": {"presence_penalty": -0.5, "frequency_penalty": -0.25},
    "everything": {
        "sequence_bias": [[[4], 2.0], [[30], 2.5], [[9], 3.0]],
        "repetition_penalty": 1.2,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.2,
        "no_repeat_ngram_size": 3,
        "bad_words_ids": [[12], [5, 9, 41]],
        "min_new_tokens": 20,
        "temperature": 1.3,
        "top_k": 30,
        "top_p": 0.9,
        "min_p": 0.02,
    },
}


def rows():
    generator = torch.Generator().manual_seed(20)
    logits = [spread * torch.randn(VOCAB, generator=generator) for spread in SPREADS]

    return [torch.tensor([significant(value, 6) for value in row.tolist()]) for row in logits]


def config(parameters):
    """Without a value a truncation is off."""
    fields = dict(parameters)
    for name in ("presence_penalty", "frequency_penalty"):
        fields.pop(name, None)
    if "sequence_bias" in fields:
        fields["sequence_bias"] = {tuple(tokens): bias for tokens, bias in fields["sequence_bias"]}
    off = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "eos_token_id": END, "pad_token_id": 0}
    return GenerationConfig(**(off | fields))


def penalised(logits, parameters):
    """mu[j] - c[j] * frequency - (c[j] > 0) * presence, c[j] being how often j was generated."""
    counts = torch.bincount(torch.tensor(GENERATED), minlength=VOCAB).float()
    presence, frequency = parameters.get("presence_penalty", 0.0), parameters.get("frequency_penalty", 0.0)
    return logits - counts * frequency - (counts > 0).float() * presence


def processors(model, parameters):
    fields = config(parameters)
    fields._eos_token_tensor = torch.tensor([END])
    return model._get_logits_processor(fields, input_ids_seq_length=len(PROMPT), device="cpu")


def run(model, parameters, logits):
    """Scores after what is no truncation, and after everything."""
    ids = torch.tensor([PROMPT + GENERATED])
    scores = logits[None, :].clone()
    before, is_penalised = None, False
    for processor in processors(model, parameters):
        name = type(processor).__name__
        # OpenAI's penalties come after the repetition penalty and before the processors that ban tokens.
        if not is_penalised and name not in ("SequenceBiasLogitsProcessor", "RepetitionPenaltyLogitsProcessor"):
            scores, is_penalised = penalised(scores, parameters), True
        if before is None and name.endswith("Warper"):
            before = scores.clone()
        scores = processor(ids, scores)
    if not is_penalised:
        scores = penalised(scores, parameters)
    return (scores if before is None else before)[0], scores[0]


def cases(model, logits):
    for index, (name, parameters) in enumerate(CASES.items()):
        row = index % len(logits)
        before, after = run(model, parameters, logits[row])
        log_probs = before.log_softmax(-1).tolist()
        probabilities = after.double().softmax(-1)
        kept = (after > -torch.inf).nonzero()[:, 0].tolist()
        yield {
            "name": name,
            "row": row,
            "parameters": parameters,
            "logProbs": [None if value == -float("inf") else significant(value) for value in log_probs],
            "tokens": kept,
            "probabilities": [significant(probabilities[token]) for token in kept],
        }


def main():
    torch.set_num_threads(1)
    tiny = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, **tiny))
    logits = rows()
    header = {
        "madeBy": "tools/reference/processors.py, transformers' own processors in their own order",
        "endId": END,
        "prompt": PROMPT,
        "generated": GENERATED,
        "rows": [[significant(value, 6) for value in row.tolist()] for row in logits],
    }
    made = list(cases(model, logits))
    write_json(PATH, header, "cases", made)
    for case in made:
        print(case["name"], len(case["tokens"]), "left")


if __name__ == "__main__":
    main()
