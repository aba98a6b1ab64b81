"""Runs programs that come as lines of JSON, and answers each with what it printed, piece by piece, or with its error."""

import contextlib
import json
import sys
import traceback

answers = sys.stdout


class Pieces:
    """A standard output that keeps what is written to it."""

    def __init__(self):
        self.pieces = []

    def write(self, text):
        if text:
            self.pieces.append(text)
        return len(text)

    def flush(self):
        pass


# What a program leaves open stays open: a request ends because the program ends it, not because its objects are collected.
left = []
for line in sys.stdin:
    printed = Pieces()
    names = {"__name__": "__main__"}
    left.append(names)
    error = None
    try:
        with contextlib.redirect_stdout(printed):
            exec(json.loads(line)["program"], names)
    except SystemExit as end:
        if end.code:
            error = f"It ended with {end.code!r}."
    except Exception:
        error = traceback.format_exc()
    print(json.dumps({"pieces": printed.pieces, "error": error}), file=answers, flush=True)
