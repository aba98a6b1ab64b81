import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { postJson } from '../../support/post-json.js';
import { routingPython } from '../support/routing-python.js';
import { startServer } from '../support/skein-process.js';
import { startedServers } from '../support/started-servers.js';

const started = startedServers();

/**
 * Reads events with vLLM's own types (vllm/distributed/kv_events.py, as facts: names, order and defaults of the fields), written with
 * msgspec as there. It asks for everything from the first batch on, so that nothing depends on when it came; then it listens.
 */
const script = `
import json, sys
from typing import Any
import msgspec, zmq
from zmq.utils.monitor import recv_monitor_message

events, replay, layout = sys.argv[1:4]
array = layout == "array"

class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: int | None = None

class KVCacheEvent(msgspec.Struct, array_like=array, omit_defaults=True, gc=False, tag=True):
    pass

class BlockStored(KVCacheEvent):
    block_hashes: list[bytes | int]
    parent_block_hash: bytes | int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple[Any, ...] | None] | None = None

class BlockRemoved(KVCacheEvent):
    block_hashes: list[bytes | int]
    medium: str | None

class AllBlocksCleared(KVCacheEvent):
    pass

class KVEventBatch(EventBatch):
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]

decoder = msgspec.msgpack.Decoder(type=KVEventBatch)
context = zmq.Context()
live = context.socket(zmq.SUB)
live.setsockopt_string(zmq.SUBSCRIBE, "kv-events")
shaken = live.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
live.connect(events)
# The publisher hears of the subscription behind the handshake: whatever is asked for on another connection comes later.
recv_monitor_message(shaken)
ask = context.socket(zmq.DEALER)
ask.connect(replay)

prompts, numbers, ranks, cleared = {}, [], set(), 0

def take(number, payload):
    global cleared
    if number in numbers:
        return
    numbers.append(number)
    batch = decoder.decode(payload)
    ranks.add(batch.data_parallel_rank)
    for event in batch.events:
        if isinstance(event, AllBlocksCleared):
            prompts.clear()
            cleared += 1
        elif isinstance(event, BlockRemoved):
            for block in event.block_hashes:
                prompts.pop(block, None)
        else:
            before = [] if event.parent_block_hash is None else prompts[event.parent_block_hash]
            for place, block in enumerate(event.block_hashes):
                before = before + event.token_ids[place * event.block_size:(place + 1) * event.block_size]
                prompts[block] = before

ask.send_multipart([b"", (0).to_bytes(8, "big")])
while True:
    _, sequence, payload = ask.recv_multipart()
    number = int.from_bytes(sequence, "big", signed=True)
    if number < 0:
        break
    take(number, payload)
replayed = len(numbers)
print(json.dumps(replayed), flush=True)
while live.poll(int(sys.argv[4])):
    topic, sequence, payload = live.recv_multipart()
    assert topic == b"kv-events", topic
    take(int.from_bytes(sequence, "big"), payload)
    if json.loads(sys.argv[5]) in prompts.values():
        break
print(json.dumps({"prompts": sorted(prompts.values()), "gapless": numbers == list(range(len(numbers))),
    "ranks": sorted(ranks), "cleared": cleared, "live": len(numbers) - replayed}))
`;

const PROMPT = Array.from({ length: 40 }, (_, index) => 3 + index);
const blocks = (tokens: readonly number[], size: number) =>
  Array.from({ length: Math.floor(tokens.length / size) }, (_, index) => tokens.slice(0, (index + 1) * size));

describe.skipIf(routingPython === null)("events of the KV cache, read with vLLM's types", () => {
  it.each(['map', 'array'])('as %s, lost ones too', async (layout) => {
    const server = await started(
      startServer([
        ...['--model', tinyModelPath('gqa'), '--threads', '1', '--tokens-per-block', '8'],
        ...['--kv-events-endpoint', 'tcp://127.0.0.1:*', '--kv-events-replay-endpoint', 'tcp://127.0.0.1:*'],
        ...['--kv-events-topic', 'kv-events', '--kv-events-format', layout],
      ]),
    );
    const [, events, replay] = /events of the KV cache at (\S+), lost ones at (\S+)/.exec(
      server.output().stdout,
    )!;
    const ask = async (prompt: readonly number[]) => {
      const body = { prompt, max_tokens: 1, temperature: 0, ignore_eos: true };
      expect((await postJson(`${server.url}/v1/completions`, body)).status).toBe(200);
    };
    await ask(PROMPT);
    await ask([...PROMPT.slice(0, 16), ...PROMPT.slice(0, 16)]);
    const fresh = PROMPT.toReversed();
    const reading = promisify(execFile)(routingPython!, [
      ...['-c', script, events!, replay!, layout, '120000', JSON.stringify(fresh)],
    ]);
    await new Promise<void>((resolve, reject) => {
      reading.child.stdout!.once('data', () => resolve());
      reading.catch(reject);
    });
    await ask(fresh);
    const { stdout } = await reading;
    const expected = [
      ...blocks(PROMPT, 8),
      ...blocks([...PROMPT.slice(0, 16), ...PROMPT.slice(0, 16)], 8).slice(2),
      ...blocks(fresh, 8),
    ];
    const found = JSON.parse(stdout.split('\n')[1]!) as { prompts: number[][] };
    expect(found).toMatchObject({ gapless: true, ranks: [0], cleared: 1 });
    const sorted = (lists: number[][]) => lists.map((list) => list.join(' ')).sort();
    expect(sorted(found.prompts)).toEqual(sorted(expected));
  });
});
