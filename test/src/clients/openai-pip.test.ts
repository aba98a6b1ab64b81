import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectIdle } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const script = `
import json, sys
from openai import OpenAI, BadRequestError

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "What is your name?"}]
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

/** 64 streams at once. Every other one is left after a random number of chunks: by return, or as its task is cancelled. */
const crowdScript = `
import asyncio, json, random, sys
from openai import AsyncOpenAI

async def main():
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
    model = (await client.models.list()).data[0].id
    draw = random.Random(11)

    async def run(index, chunks_to_read, cancels):
        stream = await client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": f"Write about the number {index}."}],
            max_tokens=24, seed=index, stream=True, extra_body={"ignore_eos": True})
        chunks = 0
        async with stream:
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].finish_reason:
                    return chunk.choices[0].finish_reason
                chunks += 1
                if chunks == chunks_to_read and cancels:
                    asyncio.current_task().cancel()
                    await asyncio.sleep(0)
                if chunks == chunks_to_read:
                    return "left"
        return "cut"

    leaves = [index % 2 == 1 for index in range(64)]
    tasks = [
        asyncio.create_task(run(index, draw.randint(1, 20) if leaves[index] else None, draw.random() < 0.5))
        for index in range(64)]
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    ends = ["cancelled" if isinstance(end, asyncio.CancelledError) else str(end) for end in ends]
    after = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "What is your name?"}],
        temperature=0, max_tokens=24)
    print(json.dumps({
        "stayed": [end for end, left in zip(ends, leaves) if not left],
        "left": [end for end, left in zip(ends, leaves) if left],
        "after": after.choices[0].message.content,
    }))

asyncio.run(main())
`;

describe.skipIf(testPython === null)('the openai package from pip', () => {
  let server: SkeinProcess;

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '32',
      '--max-context-tokens',
      '1024',
      '--kv-cache-tokens',
      '8192',
    ];
    server = await startServer(limits);
  });

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
    expect(said.whole).toContain('Gosling');
    expect(said.streamed).toBe(said.whole);
    expect(said.usage[0]).toBe(said.usage[1]);
    expect(said.refused).toBe('temperature');
    expect(said.legacy[1]).toBe(said.legacy[0]);
  });

  it('serves 64 streams at once of which half leave: the rest end well, the next is answered, all blocks are back', async () => {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', crowdScript, `${server.url}/v1`]);
    const said = JSON.parse(stdout) as { stayed: string[]; left: string[]; after: string };
    expect(said.stayed).toEqual(Array(32).fill('length'));
    expect(said.left).toHaveLength(32);
    expect(new Set(said.left)).toEqual(new Set(['left', 'cancelled']));
    expect(said.after).toContain('Gosling');
    await expectIdle(server.url);
  });
});
