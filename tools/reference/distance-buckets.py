"""
Writes test/goldens/distance-buckets.json: the buckets of distances that transformers has for MPNet and DeBERTa.

    python tools/reference/distance-buckets.py

A distance is the position of a key less that of its query. The buckets are written as runs, from -first on: [bucket, length].
"""

import json
import os
from itertools import groupby

import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "goldens", "distance-buckets.json")
# Of published models and of none: [position_buckets, max_relative_positions].
DEBERTA = [(256, 512), (256, 1024), (256, 1536), (32, 128), (8, 40), (6, 24), (64, 2048), (16, 16), (None, 512), (None, 16)]


def golden(buckets, farthest, first, found):
    runs = [[bucket, len(list(run))] for bucket, run in groupby(found.tolist())]
    return {"buckets": buckets, "farthest": farthest, "first": first, "runs": runs}


def deberta(buckets, farthest):
    first = 2 * farthest
    relative = -torch.arange(-first, first + 1)
    if buckets is not None:
        relative = make_log_bucket_position(relative, buckets, farthest)
    span = buckets or farthest
    return golden(buckets, farthest, first, torch.clamp(relative.to(torch.long) + span, 0, 2 * span - 1))


def main():
    first = 600
    t5 = golden(32, 128, first, MPNetEncoder.relative_position_bucket(torch.arange(-first, first + 1)))
    found = {"madeBy": "tools/reference/distance-buckets.py, transformers", "t5": t5, "deberta": [deberta(*one) for one in DEBERTA]}
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump(found, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
