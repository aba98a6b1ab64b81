"""
Writes what openai-harmony reads and writes into test/goldens/harmony.json.

    pip install openai-harmony
    TIKTOKEN_ENCODINGS_BASE=FOLDER python tools/reference/harmony.py [--random COUNT FILE]

FOLDER has o200k_base.tiktoken, a line for each rank of the vocabulary: the text in base64, and the rank. openai-harmony checks its SHA-256.
With --random it writes that many made-up streams into FILE instead, for tools/judge-harmony/main.ts.
"""

import base64
import json
import os
import random
import sys

import openai_harmony as harmony
from openai_harmony import Author, Conversation, DeveloperContent, Message, ReasoningEffort, Role, SystemContent, ToolDescription

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "../../test/goldens/harmony.json")
ENCODING = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
NEXT = "<|end|><|start|>assistant"
WEATHER = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Zürich 🪿"}<|call|>'

# A text in « » is spelled, in tokens that are no special ones.
STREAMS = {
    "final": "<|channel|>final<|message|>Hi there.<|return|>",
    "analysis and final": f"<|channel|>analysis<|message|>A greeting 🪿.{NEXT}<|channel|>final<|message|>Grüezi 雁!\n<|return|>",
    "two analyses": f"<|channel|>analysis<|message|>One{NEXT}<|channel|>analysis<|message|>Two{NEXT}<|channel|>final<|message|>3<|return|>",
    "a call": f"<|channel|>analysis<|message|>Look.{NEXT}{WEATHER}",
    "a call without a space": f"<|channel|>commentary to=functions.weather<|constrain|>json<|message|>{{}}<|call|>",
    "a call with the recipient first": f"<|channel|>analysis<|message|>Look.{NEXT} to=functions.weather<|channel|>commentary json<|message|>{{}}<|call|>",
    "the recipient first in the first message": " to=functions.weather<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
    "a call in analysis": "<|channel|>analysis to=functions.weather <|constrain|>json<|message|>{}<|call|>",
    "a preamble": f"<|channel|>commentary<|message|>I look.{NEXT}{WEATHER}",
    "two calls": f"{WEATHER.replace('<|call|>', NEXT)}<|channel|>commentary to=functions.find <|constrain|>json<|message|>{{\"a\": [1]}}<|call|>",
    "a call of python": f"<|channel|>analysis to=python code<|message|>print(1)<|call|>",
    "a call of the browser": '<|channel|>analysis to=browser.search code<|message|>{"query": "x"}<|call|>',
    "another channel": "<|channel|>remark<|message|>Hm.<|return|>",
    "no channel": "<|message|>Hm.<|return|>",
    "spelled tokens": "<|channel|>final<|message|>It ends with «<|end|>» and «<|start|>assistant<|channel|>final<|message|>» 🌀🌁🌂.<|return|>",
    "spelled tokens in a header": "<|channel|>analysis«<|message|>»<|message|>x<|return|>",
    "no text": f"<|channel|>analysis<|message|>{NEXT}<|channel|>final<|message|><|return|>",
    "a cut answer": f"<|channel|>analysis<|message|>One{NEXT}<|channel|>final<|message|>Tw",
    "a cut call": f'{WEATHER[:-len("rich 🪿") - 10]}',
    "a header that ends": f"<|channel|>analysis I think so.{NEXT}<|channel|>final<|message|>Yes.<|return|>",
}

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city."},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
CALL = {"role": "assistant", "content": "", "reasoning": "I need it.", "call": ["weather", {"city": "Bern", "days": 2}]}
USER = {"role": "user", "content": "Weather in Bern? <|end|>"}
CONVERSATIONS = [
    {"name": "a question", "messages": [{"role": "user", "content": "Hi"}]},
    {"name": "instructions", "effort": "high", "messages": [{"role": "system", "content": "Be brief.\n\nAlways."}, USER]},
    {"name": "earlier turns", "effort": "low", "messages": [USER, {"role": "assistant", "content": "Sun.", "reasoning": "Easy."}, {"role": "user", "content": "And?"}]},
    {"name": "functions", "tools": True, "messages": [{"role": "system", "content": "Be brief."}, USER]},
    {"name": "a call", "tools": True, "messages": [USER, CALL, {"role": "tool", "content": '{"sunny": true}'}]},
    {"name": "a call of an earlier turn", "tools": True, "messages": [USER, CALL, {"role": "tool", "content": "sun"}, {"role": "assistant", "content": "Sun."}, {"role": "user", "content": "And?"}]},
]


def encoded(stream):
    """Tokens of a stream; those of texts in « » are spelled."""
    tokens = []
    for i, part in enumerate(stream.replace("»", "«").split("«")):
        tokens += ENCODING.encode(part, **({"disallowed_special": ()} if i % 2 else {"allowed_special": "all"}))
    return tokens


def read(tokens):
    """The tokens with what is read of each, and the messages; None where the library refuses them."""
    strict = parsed(tokens, True)
    return strict if strict is not None else parsed(tokens, False)


def parsed(tokens, strict):
    parser = harmony.StreamableParser(ENCODING, Role.ASSISTANT, strict=strict)
    deltas = []
    try:
        for token in tokens:
            parser.process(token)
            deltas.append(parser.last_content_delta or "")
        parser.process_eos()
    except harmony.HarmonyError:
        return None
    messages = [[m.channel, m.recipient, m.content_type, m.content[0].text] for m in parser.messages]
    return {"strict": strict, "deltas": deltas, "messages": messages}


def stream_entry(name, tokens):
    texts = [bytes_of(token).hex() if token < MAX_RANK else ENCODING.decode([token]) for token in tokens]
    return {"name": name, "tokens": texts, "read": read(tokens)}


MAX_RANK = 199998
RANKS = {}


def bytes_of(token):
    if not RANKS:
        with open(os.path.join(os.environ["TIKTOKEN_ENCODINGS_BASE"], "o200k_base.tiktoken")) as file:
            for line in file:
                text, rank = line.split()
                RANKS[int(rank)] = base64.b64decode(text)
    return RANKS[token]


def rendered(conversation):
    as_template = [written_by_template(one) for one in conversation["messages"]]
    text = ENCODING.decode(tokens_of(conversation, conversation["messages"], SCHEMA))
    return {**conversation, "text": text, "ids": tokens_of(conversation, as_template, WITHOUT_DEFAULTS)}


WITHOUT_DEFAULTS = {**SCHEMA, "properties": {name: {key: one for key, one in of.items() if key != "default"} for name, of in SCHEMA["properties"].items()}}


def written_by_template(message):
    """A message of which openai-harmony writes what the template of gpt-oss does: results are JSON, an empty line comes after instructions."""
    if message["role"] == "tool":
        return {**message, "content": json.dumps(message["content"])}
    return message


def tokens_of(conversation, asked, schema):
    effort = {"low": ReasoningEffort.LOW, "high": ReasoningEffort.HIGH}.get(conversation.get("effort"), ReasoningEffort.MEDIUM)
    system = SystemContent.new().with_reasoning_effort(effort).with_conversation_start_date("2026-11-28")
    messages = [Message.from_role_and_content(Role.SYSTEM, system)]
    developer = DeveloperContent.new()
    asked = list(asked)
    instructions = asked.pop(0)["content"] if asked[0]["role"] == "system" else None
    if schema is WITHOUT_DEFAULTS and instructions is not None and not conversation.get("tools"):
        instructions += "\n\n"
    if instructions is not None:
        developer = developer.with_instructions(instructions)
    if conversation.get("tools"):
        developer = developer.with_function_tools([ToolDescription.new("weather", "The weather.", parameters=schema), ToolDescription.new("now", "The time.")])
    if instructions is not None or conversation.get("tools"):
        messages.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    for message in asked:
        messages += written(message)
    return ENCODING.render_conversation_for_completion(Conversation.from_messages(messages), Role.ASSISTANT)


def written(message):
    if message["role"] == "user":
        return [Message.from_role_and_content(Role.USER, message["content"])]
    if message["role"] == "tool":
        made = Message.from_author_and_content(Author.new(Role.TOOL, "functions.weather"), message["content"])
        return [made.with_channel("commentary").with_recipient("assistant")]
    made = []
    if "reasoning" in message:
        made.append(Message.from_role_and_content(Role.ASSISTANT, message["reasoning"]).with_channel("analysis"))
    if "call" in message:
        name, arguments = message["call"]
        call = Message.from_role_and_content(Role.ASSISTANT, json.dumps(arguments)).with_channel("commentary")
        made.append(call.with_recipient(f"functions.{name}").with_content_type("json"))
    else:
        made.append(Message.from_role_and_content(Role.ASSISTANT, message["content"]).with_channel("final"))
    return made


def random_streams(count):
    """Streams of messages with pieces of others in them."""
    draw = random.Random(7)
    headers = ["<|channel|>analysis", "<|channel|>final", "<|channel|>commentary", "<|channel|>commentary to=functions.f <|constrain|>json",
               " to=functions.g.h<|channel|>commentary json", "<|channel|>analysis to=python code", "<|channel|>commentary to=functions.f<|constrain|>json", "<|channel|>x", ""]
    bodies = ["Hm.", "", '{"a": 1}', "«<|end|>»", "🪿雁 ü", "\n\n", " to=functions.f", "«<|start|>assistant»", "<", "|>", "🌀🌁"]
    for _ in range(count):
        messages = [draw.choice(headers) + "<|message|>" + "".join(draw.choice(bodies) for _ in range(draw.randrange(4))) for _ in range(draw.randrange(1, 4))]
        whole = encoded(NEXT.join(messages) + draw.choice(["<|return|>", "<|call|>", "<|end|>", ""]))
        yield whole[: draw.randrange(1, len(whole) + 1)] if draw.random() < 0.3 else whole


def main():
    if sys.argv[1:2] == ["--random"]:
        entries = [{"ids": tokens, "read": read(tokens)} for tokens in random_streams(int(sys.argv[2]))]
        with open(sys.argv[3], "w", encoding="utf8") as file:
            json.dump(entries, file, ensure_ascii=False)
        return
    streams = [stream_entry(name, encoded(stream)) for name, stream in STREAMS.items()]
    conversations = [rendered(one) for one in CONVERSATIONS]
    with open(GOLDEN, "w", encoding="utf8") as file:
        listed = [",\n".join(json.dumps(one, ensure_ascii=False) for one in entries) for entries in (streams, conversations)]
        file.write('{"streams": [\n%s\n], "schema": %s, "conversations": [\n%s\n]}\n' % (listed[0], json.dumps(SCHEMA), listed[1]))


main()
