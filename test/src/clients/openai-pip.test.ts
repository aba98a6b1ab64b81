import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testModelPath } from '../../support/test-model.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const script = `
import json, sys
from openai import OpenAI, BadRequestError

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "What is the capital of France?"}]
whole = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=24)
stream = client.chat.completions.create(
    model=model, messages=messages, temperature=0, max_tokens=24, stream=True,
    stream_options={"include_usage": True}, extra_body={"top_k": 1})
parts, usage = [], None
for chunk in stream:
    usage = chunk.usage or usage
    parts += [choice.delta.content or "" for choice in chunk.choices]
try:
    client.chat.completions.create(model=model, messages=messages, temperature=9)
    refused = None
except BadRequestError as error:
    refused = error.param
legacy = client.completions.create(model=model, prompt="Once upon a time", max_tokens=3, temperature=0, logprobs=1)
print(json.dumps({
    "whole": whole.choices[0].message.content,
    "streamed": "".join(parts),
    "usage": [usage.total_tokens, whole.usage.total_tokens],
    "refused": refused,
    "legacy": [legacy.choices[0].text, "".join(legacy.choices[0].logprobs.tokens)],
}))
`;

describe.skipIf(testPython === null || testModelPath === null)('the openai package from pip', () => {
  let server: SkeinProcess;

  beforeAll(async () => {
    const limits = ['--max-num-sequences', '8', '--max-seq-len', '1024', '--max-tokens', '8192'];
    server = await startServer(['--model', testModelPath!, ...limits]);
  }, 300_000);

  afterAll(async () => {
    await server?.stop();
  });

  it('chats, streams, completes and is refused as it expects', async () => {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', script, `${server.url}/v1`]);
    const said = JSON.parse(stdout) as {
      whole: string;
      streamed: string;
      usage: [number, number];
      refused: string;
      legacy: [string, string];
    };
    expect(said.whole).toContain('Paris');
    expect(said.streamed).toBe(said.whole);
    expect(said.usage[0]).toBe(said.usage[1]);
    expect(said.refused).toBe('temperature');
    expect(said.legacy[1]).toBe(said.legacy[0]);
  }, 120_000);
});
