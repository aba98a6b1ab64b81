import type { GptManagerOptions, InferenceRequest, OptionalParams } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../engine/building/engine.js';
import { bool, f32, i32, makeRequest, text, u64 } from '../../../tools/support/loop-harness.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { ManagerClient } from '../../support/manager-client.js';
import { poll, rankProcesses, stopProcess } from '../../support/rank-managers.js';

/** Outputs that two runs of one request differ in: those about its way and not its answer. */
const VARIABLE = /^(random_seed|request_times_ms|num_iterations|num_pauses|.*_blocks)$/;

const engines = new TestEngines();
let engine: Engine;
beforeAll(async () => {
  engine = await engines.get(tinyModelPath('gqa'), 'bf16');
});
afterAll(() => engines.remove());

const clients: ManagerClient[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map(({ manager }) => manager.terminate()));
});

function start(optionalParams: OptionalParams, more: Partial<GptManagerOptions> = {}): ManagerClient {
  const client = new ManagerClient({
    enginePath: engine.directory,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 2,
    schedulerPolicy: 'MAX_UTILIZATION',
    optionalParams: {
      threads: 1,
      statsFormat: 'IterationStats',
      maxSeqLen: 128,
      workerRestart: { delayMs: 1, maxDelayMs: 20, maxFailedStarts: 100 },
      ...optionalParams,
    },
    ...more,
  });
  clients.push(client);
  return client;
}

// The layers of a tiny model cannot be dealt evenly, and by itself it would run few requests together.
const STAGES = { pipelineParallelSize: 2, minMicroBatchSize: 1 };

async function answers(client: ManagerClient, requests: readonly InferenceRequest[]) {
  await Promise.all(requests.map((request) => client.submit(request)));
  return requests.map(({ requestId }) => {
    const responses = client.responses.get(requestId)!;
    return responses
      .flatMap(({ error, outputs }) => [error, ...outputs.filter(({ name }) => !VARIABLE.test(name))])
      .filter((one) => one !== '');
  });
}

/** Sampled, with log-probs, of several lengths, some with a guide, with beams or with logits. */
const mixed = (count: number): InferenceRequest[] =>
  Array.from({ length: count }, (_, i) => {
    const prompt = Array.from({ length: 3 + ((5 * i) % 40) }, (_, t) => (7 * t + i) % 50);
    return makeRequest(BigInt(i + 1), prompt, 5 + ((3 * i) % 20), {
      streaming: bool(false),
      random_seed: u64(BigInt(i)),
      return_log_probs: bool(true),
      end_id: i32(0),
      ...(i % 4 === 3 ? { beam_width: i32(2) } : { temperature: f32(0.9) }),
      ...(i % 4 === 1 ? { return_generation_logits: bool(true) } : {}),
      ...(i % 4 === 2
        ? {
            guided_decoding_guide_type: text('choice'),
            guided_decoding_guide: text(JSON.stringify([`answer ${i}`, `another ${i}`])),
          }
        : {}),
    });
  });

/** Numbers of the micro-batches that ran. */
const micros = (client: ManagerClient) =>
  new Set(
    client.stats.flatMap((json) => [...json.matchAll(/"microBatchId":(\d+)/g)].map(([, id]) => Number(id))),
  );

describe('micro-batches over the stages of a manager', () => {
  it('answer what one process answers, and both run', async () => {
    const expected = await answers(start({}), mixed(12));
    const client = start(STAGES);
    expect(await answers(client, mixed(12))).toEqual(expected);
    expect(micros(client)).toEqual(new Set([0, 1]));
  });

  it('with pauses, reuse and chunks on a small pool, and with two ranks in each stage', async () => {
    const small: OptionalParams = {
      enableChunkedContext: true,
      maxNumTokens: 32,
      kvCacheConfig: { maxTokens: 160, enableBlockReuse: true },
    };
    const expected = await answers(start({}), mixed(12));
    const client = start({ ...STAGES, tensorParallelSize: 2, ...small });
    expect(await answers(client, mixed(12))).toEqual(expected);
    expect(micros(client)).toEqual(new Set([0, 1]));
    expect(client.stats.some((json) => /"numPausedRequests":[1-9]/.test(json))).toBe(true);
  });

  it('end each request of all of them once when a stage is killed, and come back', async () => {
    const client = start(STAGES);
    await client.manager.ready;
    const ids = Array.from({ length: 8 }, (_, i) => BigInt(i + 1));
    // Stage 1 stands still, so that none ends before it is killed.
    await poll(() => rankProcesses().length === 1);
    const [stage] = rankProcesses();
    await stopProcess(stage!);
    const done = Promise.all(ids.map((id) => client.submit(makeRequest(id, [5, 6, Number(id)], 100))));
    while (client.manager.numInFlight < ids.length) await new Promise((resolve) => setTimeout(resolve, 2));
    process.kill(stage!, 'SIGKILL');
    await done;
    for (const id of ids) {
      const finals = client.responses.get(id)!.filter(({ final }) => final);
      expect(finals.map(({ error }) => error)).toEqual([
        expect.stringMatching(/The engine failed: .*[Rr]ank [01]/),
      ]);
    }
    // A response after a final one would be an error.
    expect(client.errors.filter((error) => error.includes('after its final one'))).toEqual([]);
    const again = ids.map((id) => makeRequest(100n + id, [5, 6, Number(id)], 10));
    expect(await answers(client, again)).toEqual(await answers(start({}), again));
  });
});
