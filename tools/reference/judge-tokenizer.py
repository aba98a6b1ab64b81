"""What Hugging Face's tokenizers make of texts and ids: the judge of tools/judge-tokenizers.

    pip install tokenizers
    python tools/reference/judge-tokenizer.py < JOB > RESULT

JOB is {"tokenizer": path of a tokenizer.json, "texts": [...], "ids": [[...], ...]}; RESULT is
{"encoded": [ids of each text], "decoded": [text of the ids of each text], "ofIds": [text of each list]}, with special tokens shown and none added.
"""

import json
import sys

from tokenizers import Tokenizer


def main() -> None:
    job = json.load(sys.stdin)
    tokenizer = Tokenizer.from_file(job["tokenizer"])
    encoded = [one.ids for one in tokenizer.encode_batch(job["texts"], add_special_tokens=False)]
    decoded = tokenizer.decode_batch(encoded, skip_special_tokens=False)
    of_ids = tokenizer.decode_batch(job["ids"], skip_special_tokens=False)
    json.dump({"encoded": encoded, "decoded": decoded, "ofIds": of_ids}, sys.stdout)


if __name__ == "__main__":
    main()
