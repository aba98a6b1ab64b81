"""
Writes what Jinja2 makes of the templates in test/fixtures/templates.

    python3 tools/reference/templates/write-fixtures.py

renders each entry of constructs.json, which keeps its template, and each .jinja file with each of conversations.json into
rendered.json. It needs Jinja2 3.1.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "../../../test/fixtures/templates")
VARIABLES = {"x": "\n a \n", "d": [{"a": 1}, {"a": 2}, {"a": 1}], "m": {"a": 5}, "messages": [{"role": "user", "content": "Q"}]}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def judged(templates, conversations, variables):
    jobs = json.dumps({"templates": templates, "conversations": conversations, "variables": variables})
    judge = [sys.executable, os.path.join(HERE, "render.py")]
    return json.loads(subprocess.run(judge, input=jobs, check=True, capture_output=True, text=True).stdout)


def read(name):
    with open(os.path.join(FIXTURES, name), encoding="utf8", newline="") as file:
        return file.read()


def write(name, entries):
    with open(os.path.join(FIXTURES, name), "w", encoding="utf8") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]\n")


def main():
    sources = [entry["template"] for entry in json.loads(read("constructs.json"))]
    found = judged(sources, [{}], VARIABLES)
    results = [one[0] if isinstance(one, list) else one for one in found]
    write("constructs.json", [{"template": source, **result} for source, result in zip(sources, results)])
    files = sorted(name for name in os.listdir(FIXTURES) if name.endswith(".jinja"))
    conversations = json.loads(read("conversations.json"))
    rendered = judged([read(name) for name in files], [one["variables"] for one in conversations], TOKENS)
    write(
        "rendered.json",
        [{"template": name, "conversation": one["name"], **result} for name, results in zip(files, rendered) for one, result in zip(conversations, results)],
    )


main()
