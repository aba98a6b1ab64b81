import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { testPython } from '../../support/test-python.js';
import {
  type Answer,
  type Call,
  type Client,
  type LogProb,
  PERSON_SCHEMA,
  type Refusal,
  WEATHER_TOOL,
} from './client.js';

/** Reads what to do as lines of JSON and answers each with one. */
const DRIVER = `
import json, sys
from openai import APIStatusError, OpenAI
from pydantic import BaseModel, ConfigDict, Field

class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)

def body(job):
    ask = job["ask"]
    return {
        "model": job["place"]["model"], "messages": [{"role": "user", "content": ask["prompt"]}],
        "max_tokens": ask["maxTokens"], "temperature": ask.get("temperature", 0)}

def answer(text, finish, usage):
    return {"text": text, "finish": finish, "inputTokens": usage.prompt_tokens, "outputTokens": usage.completion_tokens}

def whole(client, job):
    said = client.chat.completions.create(**body(job))
    return answer(said.choices[0].message.content, said.choices[0].finish_reason, said.usage)

def streamed(client, job):
    text, pieces, finish, usage = "", 0, None, None
    stream = client.chat.completions.create(**body(job), stream=True, stream_options={"include_usage": True})
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            if choice.delta.content:
                text, pieces = text + choice.delta.content, pieces + 1
    return {**answer(text, finish, usage), "pieces": pieces}

def calls(client, job):
    ask = {**body(job), "tools": [job["tool"]], "tool_choice": "required", "parallel_tool_calls": False}
    if job["how"] == "whole":
        said = client.chat.completions.create(**ask)
    else:
        with client.chat.completions.stream(**ask) as stream:
            for event in stream:
                pass
            said = stream.get_final_completion()
    made = said.choices[0].message.tool_calls
    return [{"name": call.function.name, "args": json.loads(call.function.arguments)} for call in made]

def person(client, job):
    said = client.chat.completions.parse(**body(job), response_format=Person)
    return said.choices[0].message.parsed.model_dump()

def log_probs(client, job):
    said = client.chat.completions.create(**body(job), logprobs=True, top_logprobs=2)
    return [token.model_dump() for token in said.choices[0].logprobs.content]

def leave(client, job):
    with client.chat.completions.create(**body(job), stream=True) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break

def refused(client, job):
    try:
        whole(client, job)
    except APIStatusError as error:
        return {"status": error.status_code, "message": error.message}

TASKS = {task.__name__: task for task in [whole, streamed, calls, person, log_probs, leave, refused]}
for line in sys.stdin:
    job = json.loads(line)
    with OpenAI(base_url=job["place"]["url"] + "/v1", api_key="none", max_retries=job["retries"]) as client:
        try:
            result = {"result": TASKS[job["task"]](client, job)}
        except Exception as error:
            result = {"error": repr(error)}
    print(json.dumps(result), flush=True)
`;

/** The openai package of pip, in one Python process that answers one question after the other. */
export class PipClient implements Client {
  readonly name = 'openai from pip';
  readonly #python: ChildProcess;
  readonly #answers: NodeJS.AsyncIterator<string>;

  constructor() {
    this.#python = spawn(testPython!, ['-c', DRIVER], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#python.stdout! })[Symbol.asyncIterator]();
  }

  close(): void {
    this.#python.stdin!.end();
  }

  async #run<T>(task: string, fields: object): Promise<T> {
    this.#python.stdin!.write(`${JSON.stringify({ task, retries: 0, ...fields })}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('The driver in Python has ended.');
    const { result, error } = JSON.parse(value) as { result: T; error?: string };
    if (error !== undefined) throw new Error(error);
    return result;
  }

  whole: Client['whole'] = (place, ask) => this.#run<Answer>('whole', { place, ask });
  streamed: Client['streamed'] = (place, ask) => this.#run('streamed', { place, ask });
  calls: Client['calls'] = (place, ask, how) =>
    this.#run<Call[]>('calls', { place, ask, how, tool: WEATHER_TOOL });
  person: Client['person'] = (place, ask) => this.#run('person', { place, ask, schema: PERSON_SCHEMA });
  logProbs: NonNullable<Client['logProbs']> = (place, ask) =>
    this.#run<LogProb[]>('log_probs', { place, ask });
  leave: Client['leave'] = (place, ask) => this.#run('leave', { place, ask });
  refused: Client['refused'] = (place, ask) => this.#run<Refusal>('refused', { place, ask });
  persistent: Client['persistent'] = async (place, ask) =>
    (await this.#run<Answer>('whole', { place, ask, retries: 9 })).text;
}
