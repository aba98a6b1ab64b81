"""Ten requests with their seeds, as a batch; card.py shows the answers as they came.

    python3 tools/demo-model/samples.py > requests.jsonl
    skein batch requests.jsonl answers.jsonl
"""

import json

REQUESTS = ["Tell me a story about a cat", "hello", "Tell me a story about a dragon and a princess", "what is your name",
            "Write a short story about a robot who is afraid of the dark", "Tell me a story about friendship",
            "Can you tell me a story about a turtle named Greta?", "What is the capital of France?", "a sleepy bear in the snow",
            "Tell me a story about a washing machine"]


def lines():
    for seed, request in enumerate(REQUESTS, 1):
        body = {"model": "gosling", "messages": [{"role": "user", "content": request}], "temperature": 0.7, "seed": seed, "max_tokens": 400}
        yield {"custom_id": str(seed), "method": "POST", "url": "/v1/chat/completions", "body": body}


def shown(path):
    """The answers as they came, for the card."""
    answers = {}
    for line in open(path):
        answer = json.loads(line)
        answers[answer["custom_id"]] = answer["response"]["body"]["choices"][0]
    for line in lines():
        name, request = line["custom_id"], line["body"]["messages"][0]["content"]
        yield f"{name}. **{request}** (seed {name}, finish reason {answers[name]['finish_reason']})\n\n   > {answers[name]['message']['content']}\n"


if __name__ == "__main__":
    for line in lines():
        print(json.dumps(line))
