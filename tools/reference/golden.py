"""What the reference scripts share: greedy decoding by Hugging Face transformers in float32, and compact JSON."""

import contextlib
import inspect
import json

import torch


def significant(value, digits=7):
    """A float32 with the digits that it can hold."""
    return float(f"{float(value):.{digits}g}")


def row(values):
    return [significant(value) for value in values.tolist()]


@torch.no_grad()
def all_logits(model, ids):
    """Logits [len(ids), vocab] of one uncached forward."""
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


@torch.no_grad()
def greedy(model, prompt, count):
    """
    Greedy tokens after `prompt`, with the distance between the two greatest logits at each step. end_id is ignored.
    Returns (tokens [count], gaps [count], logits [count, vocab] from which each token was taken).
    """
    tokens, gaps, steps = [], [], []
    # Models without attention call it otherwise.
    own = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    output = model(input_ids=torch.tensor([prompt]), use_cache=True)
    for _ in range(count):
        logits = output.logits[0, -1].float()
        top = torch.topk(logits, 2).values
        # Ties go to the lowest token id, as in the engine.
        tokens.append(int((logits == top[0]).nonzero()[0, 0]))
        gaps.append(significant(top[0] - top[1], 4))
        steps.append(logits)
        if len(tokens) < count:
            output = model(input_ids=torch.tensor([[tokens[-1]]]), use_cache=True, **{own: output[own]})
    return tokens, gaps, torch.stack(steps)


@contextlib.contextmanager
def in_double():
    """Code of transformers that asks for float32, as norms and scans do, computes in float64."""
    single, cast = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.Tensor.float = single, cast
        torch.set_default_dtype(single)


@torch.no_grad()
def log_probs(model, ids, tokens):
    """Log-probabilities [len(tokens)] of tokens that follow a prompt, of logits of the model's own type, in float64."""
    logits = model(input_ids=torch.tensor([ids + tokens[:-1]]), use_cache=False).logits[0]
    return torch.log_softmax(logits[len(ids) - 1 :].double(), -1)[range(len(tokens)), tokens]


def exact_log_probs(model, ids, tokens):
    """Those of the model in float64, of which type it is afterwards."""
    model.double()
    if hasattr(model, "set_experts_implementation"):
        # The usual products of mixtures take no float64.
        model.set_experts_implementation("eager")
    with in_double():
        return log_probs(model, ids, tokens)


def judged_prompt(model, ids, kept, count):
    """What a tiny model answers to a prompt: `count` greedy tokens, and the logits of the positions `kept`."""
    logits = all_logits(model, ids)
    tokens, gaps, _ = greedy(model, ids, count)
    return {
        "promptIds": ids,
        "ropeFinalLength": len(ids) + count,
        "tokens": tokens,
        "gaps": gaps,
        "logits": [{"position": position, "values": row(logits[position])} for position in kept],
    }


def greedy_recomputed(last_logits, count):
    """
    As greedy, without a cache: `last_logits(tokens)` gives the logits after the prompt and these tokens.
    Returns (tokens [count], gaps [count]).
    """
    tokens, gaps = [], []
    for _ in range(count):
        last = last_logits(tokens)
        top = torch.topk(last, 2).values
        tokens.append(int((last == top[0]).nonzero()[0, 0]))
        gaps.append(significant(top[0] - top[1], 4))
    return tokens, gaps


def write_json(path, header, items_name, items):
    """One line per item, so that a changed golden is a readable diff."""
    with open(path, "w", encoding="utf-8") as file:
        body = ",\n  ".join(json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
        head = json.dumps(header, ensure_ascii=False)[:-1]
        file.write(f'{head},\n "{items_name}": [\n  {body}\n ]}}\n')
