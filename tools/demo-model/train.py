"""Trains the demo model on a CPU (or a GPU where torch finds one), and goes on where it was stopped.

    python3 tools/demo-model/train.py corpus.jsonl TOKENIZER_FOLDER RUN_FOLDER --steps 4000

A step is about --tokens tokens of conversations of like length; loss is taken of the answers alone. The learning rate
climbs for 100 steps, stays, and falls to nothing over the last --decay of the steps: with a greater --steps a run that was
saved before its fall goes on as if it had always been so long. RUN_FOLDER/state.pt is written every --save-every steps, aside
and renamed; RUN_FOLDER/log.jsonl has the losses.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from corpus import is_held_out
from network import Network
from tokenizer import END_OF_TEXT, END_OF_TURN, TURN
from tokenizers import Tokenizer

CONTEXT = 512
NO_LOSS = -100


def encode(tokenizer, line):
    """(ids, labels): labels are NO_LOSS where the text is not the model's own."""
    end_of_text, turn, end_of_turn = (tokenizer.token_to_id(t) for t in (END_OF_TEXT, TURN, END_OF_TURN))
    newline = tokenizer.encode("\n").ids
    if "text" in line:
        ids = tokenizer.encode(line["text"]).ids + [end_of_text]
        return ids, ids[:]
    ids, labels = [], []
    for message in line["messages"]:
        head = [turn, *tokenizer.encode(message["role"] + "\n").ids]
        body = [*tokenizer.encode(message["content"]).ids, end_of_turn]
        own = message["role"] == "assistant"
        ids += head + body + newline
        labels += [NO_LOSS] * len(head) + (body if own else [NO_LOSS] * len(body)) + [NO_LOSS] * len(newline)
    return ids, labels


def load(corpus, tokenizer, cache):
    """Training and held-out samples, (ids, labels) as arrays of int16; read from the cache where that is there."""
    if not cache.exists():
        ids, labels, ends, held = [], [], [], []
        for line in open(corpus):
            line = json.loads(line)
            own_ids, own_labels = encode(tokenizer, line)
            if len(own_ids) <= CONTEXT:
                ids += own_ids
                labels += own_labels
                ends.append(len(ids))
                held.append(is_held_out(line["id"]))
        np.savez(cache, ids=np.array(ids, np.int16), labels=np.array(labels, np.int16), ends=ends, held=held)
    saved = np.load(cache)
    ids, labels = saved["ids"], saved["labels"]
    parts, start = ([], []), 0
    for end, is_held in zip(saved["ends"], saved["held"]):
        parts[int(is_held)].append((ids[start:end], labels[start:end]))
        start = end
    return parts


def batch(samples):
    """Samples side by side, padded at the end, where causal attention does not see it."""
    longest = max(len(ids) for ids, _ in samples)
    longest += -longest % 16
    ids = np.zeros((len(samples), longest), np.int64)
    labels = np.full((len(samples), longest), NO_LOSS, np.int64)
    for row, (own_ids, own_labels) in enumerate(samples):
        ids[row, : len(own_ids)] = own_ids
        labels[row, : len(own_labels)] = own_labels
    return torch.from_numpy(ids), torch.from_numpy(labels)


def batches_of(samples, tokens, epoch):
    """Lists of samples of like length, about `tokens` tokens each; the order depends on the epoch alone."""
    rng = random.Random(epoch)
    samples = sorted(samples, key=lambda s: len(s[0]) + rng.random() * 24)
    result, start = [], 0
    while start < len(samples):
        end, longest = start, 0
        while end < len(samples):
            longest = max(longest, len(samples[end][0]))
            if longest * (end - start + 1) > tokens and end > start:
                break
            end += 1
        result.append(samples[start:end])
        start = end
    rng.shuffle(result)
    return result


def loss_of(model, ids, labels, device):
    ids, labels = ids.to(device), labels.to(device)
    with torch.autocast(device, torch.bfloat16):
        hidden = model(ids)[:, :-1]
        # Logits only where a token is to be learned.
        wanted = labels[:, 1:] != NO_LOSS
        logits = torch.nn.functional.linear(hidden[wanted], model.embedding.weight)
    return torch.nn.functional.cross_entropy(logits.float(), labels[:, 1:][wanted], reduction="sum"), int(wanted.sum())


@torch.no_grad()
def held_out_loss(model, samples, tokens, device):
    model.eval()
    total = count = 0
    for part in batches_of(samples, tokens, 0):
        loss, n = loss_of(model, *batch(part), device)
        total, count = total + float(loss), count + n
    model.train()
    return total / count


def optimizers(model, rate):
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embedding" not in name]
    others = [p for p in model.parameters() if not any(p is m for m in matrices)]
    return [torch.optim.Muon(matrices, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)]


def rate_at(step, steps, decay):
    falling = int(steps * decay)
    return min(1.0, (step + 1) / 100, max(0.0, (steps - step) / falling) if falling else 1.0)


def save(path, value):
    torch.save(value, f"{path}.part")
    os.replace(f"{path}.part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--tokens", type=int, default=6144)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.2)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--inner", type=int, default=640)
    parser.add_argument("--compile", action="store_true", help="some minutes of compiling, then a quarter faster")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save-every", type=int, default=50)
    parser.add_argument("--held-out", type=int, default=200, help="held-out samples that are looked at on the way")
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    flags.run.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(flags.tokenizer / "tokenizer.json"))
    train, held_out = load(flags.corpus, tokenizer, flags.run / "samples.npz")
    tokens = sum(len(ids) for ids, _ in train)
    heads = flags.width // 64
    shape = {"vocabulary": tokenizer.get_vocab_size(), "width": flags.width, "layers": flags.layers, "heads": heads,
             "kv_heads": max(1, heads // 2), "inner": flags.inner}
    model = Network(**shape).to(device)
    if flags.compile:
        model.compile(dynamic=True)
    size = sum(p.numel() for p in model.parameters())
    print(f"{size / 1e6:.2f} M parameters, {len(train)} samples of {tokens / 1e6:.2f} M tokens, {len(held_out)} held out", flush=True)
    learners = optimizers(model, flags.rate)
    step = trained = 0
    state_path = flags.run / "state.pt"
    if state_path.exists():
        state = torch.load(state_path, map_location=device)
        model.load_state_dict(state["model"])
        for learner, saved in zip(learners, state["optimizers"]):
            learner.load_state_dict(saved)
        step, trained = state["step"], state["tokens"]
        print(f"goes on at step {step}", flush=True)
    per_epoch = len(batches_of(train, flags.tokens, 0))
    epoch, order = -1, []
    started, seen, losses = time.time(), 0, []
    while step < flags.steps:
        if step // per_epoch != epoch:
            epoch = step // per_epoch
            order = batches_of(train, flags.tokens, epoch)
        samples = order[step % per_epoch % len(order)]
        loss, count = loss_of(model, *batch(samples), device)
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for learner in learners:
            for group in learner.param_groups:
                group["lr"] = flags.rate * rate_at(step, flags.steps, flags.decay)
            learner.step()
            learner.zero_grad(set_to_none=True)
        losses.append(loss.item() / count)
        seen += sum(len(ids) for ids, _ in samples)
        trained += sum(len(ids) for ids, _ in samples)
        step += 1
        if step % flags.save_every == 0 or step == flags.steps:
            of_held_out = held_out_loss(model, held_out[: flags.held_out] if step < flags.steps else held_out, flags.tokens, device)
            entry = {"step": step, "loss": round(sum(losses) / len(losses), 4), "heldOut": round(of_held_out, 4),
                     "tokensPerSecond": round(seen / (time.time() - started)), "rate": learners[0].param_groups[0]["lr"]}
            print(json.dumps(entry), flush=True)
            with open(flags.run / "log.jsonl", "a") as log:
                log.write(json.dumps(entry) + "\n")
            losses = []
            save(state_path, {"model": model.state_dict(), "optimizers": [o.state_dict() for o in learners], "step": step,
                              "shape": shape, "tokens": trained, "held_out": of_held_out})


if __name__ == "__main__":
    main()
