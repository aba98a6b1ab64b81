import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { InProcessHost, type InProcessHostOptions, RequestError, type TokenRequest } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../engine/building/engine.js';
import { pageSizes } from '../../engine/peft/page-sizes.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { openAdapter } from '../../models/adapters/open-adapter.js';
import { ropeFrequencies } from '../../network/rope.js';
import { firstWrongToken, type TinyPrompt } from '../../tools/support/goldens.js';
import { Random } from '../../tools/support/random.js';
import { makeStepBatch, type StepSequence } from '../../tools/support/step-batch.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';
import { randomAdapter } from '../support/random-adapter.js';

const NUM_ADAPTERS = 20;
const NUM_REQUESTS = 64;
const RANK = 4;

const folder = temporaryFolder('skein-adapters-bits');
const engines = new TestEngines();
let engine: Engine;
beforeAll(async () => {
  engine = await engines.get(tinyModelPath('gqa'), 'bf16');
});
afterAll(() => engines.remove());

describe('adapters of a model whose layers keep states', () => {
  it('change the same bits in a crowd and in chunks as alone', async () => {
    const built = await engines.get(madeModelPath(folder, 'qwen3.5'), 'int8');
    const { config } = built.manifest;
    const executor = openExecutor(built, {
      ...{ threads: 2, maxNumSequences: 3, numBlocks: 12, tokensPerBlock: 16 },
      ...{ maxAdapters: 2, maxLoraRank: RANK },
    });
    for (const slot of [0, 1])
      executor.adapters!.put(slot, randomAdapter(config, 5 + slot, { maxRank: RANK, unchanged: 0 }));
    const { inverseFrequencies } = ropeFrequencies(config.rope);
    const rows = (sequences: StepSequence[]) => {
      const logits = executor.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }));
      return sequences.map((_, i) => logits.slice(i * config.vocabSize, (i + 1) * config.vocabSize));
    };
    const sequence = (i: number, cached: number, length: number): StepSequence => ({
      ...{
        tokens: new Random(9 + (i % 2)).tokens(40, 60).slice(0, length),
        cached,
        blocks: [3 * i, 3 * i + 1, 3 * i + 2],
      },
      ...{ adapter: i - 1, stateSlot: i },
    });
    const alone = [0, 1, 2].map((i) => rows([sequence(i, 0, 40)])[0]!);
    let crowd: Float32Array[] = [];
    for (const [cached, length] of [
      [0, 7],
      [7, 39],
      [39, 40],
    ] as const)
      crowd = rows([0, 1, 2].map((i) => sequence(i, cached, length)));
    executor.close();
    expect(crowd).toEqual(alone);
    // Sequences 0 and 2 have the same tokens, and one of them no adapter.
    expect(alone[0]).not.toEqual(alone[2]);
  });
});

const hosts: InProcessHost[] = [];
afterAll(() => Promise.all(hosts.map((host) => host.close({ abort: true }))));

async function open(
  enginePath: string,
  optionalParams: NonNullable<InProcessHostOptions['optionalParams']>,
  more: Partial<InProcessHostOptions> = {},
): Promise<InProcessHost> {
  const host = new InProcessHost({
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    maxQueueSize: NUM_REQUESTS,
    optionalParams: { threads: 2, maxSeqLen: 128, ...optionalParams },
    ...more,
  });
  hosts.push(host);
  await host.ready;
  return host;
}

interface Asked extends TokenRequest {
  adapterIndex: number | null;
}

function crowd(): Asked[] {
  const random = new Random(3);
  return Array.from({ length: NUM_REQUESTS }, (_, i): Asked => {
    // Half of the prompts are equal, so that blocks would be shared if adapters were not distinguished.
    const tokens = new Random(i % 2 === 0 ? 1 : i);
    return {
      adapterIndex: i % 7 === 0 ? null : i % NUM_ADAPTERS,
      promptTokens: Array.from({ length: 20 + (i % 5) }, () => 3 + tokens.below(250)),
      maxNewTokens: 8 + random.below(16),
      temperature: i % 3 === 0 ? 0 : 0.8,
      seed: BigInt(i),
      endTokenIds: [],
      returnLogProbs: true,
    } as Asked;
  });
}

/** Asks with the name of the task alone, and again with its weights where the engine says that it wants them. */
async function ask(
  host: InProcessHost,
  { adapterIndex, ...request }: Asked,
  adapters: readonly AdapterWeights[],
) {
  if (adapterIndex === null) return collect(host, request);
  const loraTaskId = BigInt(adapterIndex + 1);
  try {
    return await collect(host, { ...request, loraTaskId });
  } catch (error) {
    if (!(error instanceof RequestError) || error.kind !== 'adapter') throw error;
    return collect(host, { ...request, loraTaskId, adapter: adapters[adapterIndex]! });
  }
}

async function collect(host: InProcessHost, request: TokenRequest) {
  const tokens: number[] = [];
  const logProbs: number[] = [];
  for await (const piece of host.submit(request)) {
    tokens.push(...piece.tokens);
    logProbs.push(...(piece.logProbs ?? []));
  }
  return { tokens, logProbs };
}

describe('requests with adapters', () => {
  it('have the tokens of PEFT, beside each other and beside requests without one', async () => {
    const { adapters: goldens } = JSON.parse(
      readFileSync(new URL('../goldens/lora.json', import.meta.url), 'utf8'),
    ) as { adapters: { adapter: string; model: string; prompts: TinyPrompt[] }[] };
    const own = goldens.filter(({ model }) => model === 'tiny-gqa');
    const exact = await engines.get(tinyModelPath('gqa'), 'f32');
    const adapters = own.map(({ adapter }) =>
      openAdapter(fileURLToPath(new URL(`../fixtures/${adapter}`, import.meta.url)), exact.manifest.config, {
        maxRank: 8,
      }),
    );
    const host = await open(exact.directory, {
      peftCacheManagerConfig: {},
      kvCacheConfig: { maxTokens: 2048 },
    });
    const asked = own.flatMap(({ prompts }, adapterIndex) =>
      prompts.map(async (prompt) => {
        const request = {
          promptTokens: prompt.promptIds,
          maxNewTokens: prompt.tokens.length,
          temperature: 0,
        };
        const { tokens } = await ask(host, { ...request, endTokenIds: [], adapterIndex }, adapters);
        expect(firstWrongToken(tokens, prompt), `${own[adapterIndex]!.adapter}`).toBeNull();
      }),
    );
    await Promise.all(asked);
    expect(asked.length).toBeGreaterThan(4);
  });

  it.each([
    ['GUARANTEED_NO_EVICT', {}],
    ['MAX_UTILIZATION', {}],
    ['MAX_UTILIZATION', { threads: 1, tensorParallelSize: 2 }],
  ] as const)(
    'are each what they are alone, 64 over 20 adapters where there is room for 3, under %s, %o',
    async (schedulerPolicy, ranks) => {
      const adapters = Array.from({ length: NUM_ADAPTERS }, (_, i) =>
        randomAdapter(engine.manifest.config, 100 + i, { maxRank: RANK }),
      );
      const requests = crowd();
      const peftCacheManagerConfig = { optimalAdapterSize: RANK, maxAdapterSize: RANK };
      const alone = await open(engine.directory, {
        peftCacheManagerConfig,
        kvCacheConfig: { maxTokens: 512 },
      });
      const expected = [];
      for (const request of requests) expected.push(await ask(alone, request, adapters));
      const { rowsPerPage } = pageSizes(engine.manifest.config, peftCacheManagerConfig);
      let pauses = 0;
      const host = await open(
        engine.directory,
        {
          peftCacheManagerConfig: { ...peftCacheManagerConfig, numDeviceModuleLayer: 3 * rowsPerPage },
          kvCacheConfig: { maxTokens: 96, enableBlockReuse: true },
          maxSeqLen: 64,
          tokensPerBlock: 16,
          enableChunkedContext: true,
          maxNumTokens: 48,
          maxNumSequences: 12,
          checkIntegrity: true,
          ...ranks,
        },
        { schedulerPolicy, onIterationStats: (stats) => (pauses = stats.totalPauses) },
      );
      const together = await Promise.all(requests.map((request) => ask(host, request, adapters)));
      for (const [i, answer] of together.entries()) expect(answer, `request ${i}`).toEqual(expected[i]);
      if (schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
    },
  );
});
