import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshFolders } from '../../support/fresh-folders.js';
import { testPython } from '../support/test-python.js';
import { HUB_ID, type OllamaServer, startOllamaServer } from './ollama-server.js';

const makeFolder = freshFolders('skein-ollama-pip');

const script = `
import json, sys
from ollama import Client, ResponseError

client = Client(host=sys.argv[1])
hub = sys.argv[2]
messages = [{"role": "user", "content": "What is your name?"}]
options = {"temperature": 0, "num_predict": 24}
whole = client.chat(model="gosling", messages=messages, options=options)
streamed = "".join(part.message.content for part in client.chat(
    model="gosling", messages=messages, options=options, stream=True))

def clock(zone: str) -> str:
    """The time.

    Args:
      zone: where
    """
    return "noon"

tooled = client.chat(model="gosling", messages=[*messages,
    {"role": "assistant", "tool_calls": [{"function": {"name": "clock", "arguments": {"zone": "UTC"}}}]},
    {"role": "tool", "content": "noon", "tool_name": "clock"}], tools=[clock], options=options)
schema = {"type": "object", "properties": {"name": {"type": "string", "enum": ["Gosling", "Goose"]}}, "required": ["name"]}
formed = client.chat(model="gosling", messages=messages, format=schema, options={**options, "num_predict": 60})
text = client.generate(model="gosling", prompt="Once upon a time", options=options, logprobs=True, top_logprobs=2)
vectors = client.embed(model="vectors", input=["a", "b"])
older = client.embeddings(model="vectors", prompt="a")
loaded = client.ps().models
shown = client.show("gosling")
errors = []
for fields in [{"model": "none"}, {"model": "gosling", "options": {"temperature": -1}}]:
    try:
        client.chat(messages=messages, **fields)
    except ResponseError as error:
        errors.append([error.status_code, error.error])
stream = client.generate(model="gosling", prompt="Once", stream=True, options={"num_predict": 800})
next(stream)
stream.close()
pulled = [part.status for part in client.pull("hf.co/" + hub, stream=True)]
names = [model.model for model in client.list().models]
asked = client.generate(model=hub, prompt="a", raw=True, options={"num_predict": 2}, keep_alive="1m")
deleted = client.delete(hub)
left = [model.model for model in client.list().models]
unloaded = client.generate(model="gosling", keep_alive=0)
print(json.dumps({
    "whole": whole.message.content, "streamed": streamed, "reason": whole.done_reason,
    "durations": [whole.total_duration, whole.load_duration, whole.prompt_eval_duration, whole.eval_duration],
    "tooled": tooled.done, "formed": json.loads(formed.message.content)["name"],
    "context": [len(text.context), text.prompt_eval_count + text.eval_count],
    "logprobs": [len(text.logprobs), text.eval_count],
    "vectors": [len(vectors.embeddings), len(vectors.embeddings[0]), len(older.embedding)],
    "loaded": [[model.model, model.expires_at is not None, model.size > 0] for model in loaded],
    "shown": [shown.capabilities, shown.modelinfo["general.architecture"]],
    "errors": errors, "pulled": pulled[-1], "names": names, "asked": asked.done,
    "deleted": deleted.status, "left": left, "unloaded": unloaded.done_reason,
}))
`;

describe.skipIf(testPython === null)('the ollama package from pip against skein serve', () => {
  let running: OllamaServer;

  beforeAll(async () => {
    running = await startOllamaServer(makeFolder());
  });
  afterAll(() => running?.stop());

  it('chats, streams, calls, embeds, lists, pulls, deletes, and is refused as it expects', async () => {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', script, running.server.url, HUB_ID]);
    const said = JSON.parse(stdout);
    expect(said.whole).toContain('Gosling');
    expect(said).toMatchObject({
      streamed: said.whole,
      reason: expect.stringMatching(/^(stop|length)$/),
      tooled: true,
      formed: expect.stringMatching(/^(Gosling|Goose)$/),
      errors: [
        [404, "model 'none' not found"],
        [400, expect.stringMatching(/options\.temperature/)],
      ],
      pulled: 'success',
      asked: true,
      deleted: 'success',
      unloaded: 'unload',
    });
    for (const duration of said.durations) expect(duration).toBeGreaterThanOrEqual(0);
    expect(said.context[0]).toBe(said.context[1]);
    expect(said.logprobs[0]).toBeGreaterThan(0);
    expect(said.vectors[0]).toBe(2);
    expect(said.vectors[1]).toBe(said.vectors[2]);
    expect(said.loaded).toEqual([
      ['gosling:latest', true, true],
      ['vectors:latest', true, true],
    ]);
    expect(said.shown[0]).toContain('completion');
    expect(said.names).toContain(`${HUB_ID}:latest`);
    expect(said.left).not.toContain(`${HUB_ID}:latest`);
  });
});
