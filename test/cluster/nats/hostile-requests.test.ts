import { InProcessHost, type TokenRequest } from 'skein';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Packable, pack, unpack } from '../../../cluster/nats/packet.js';
import { packedRequest, unpackedRequest } from '../../../cluster/nats/request-wire.js';
import { fakeEngine } from '../../support/fake-engine.js';

let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost(fakeEngine(''));
  await host.ready;
});
afterAll(() => host.close({ abort: true }));

const GOOD: TokenRequest = { promptTokens: [1, 2, 3], maxNewTokens: 2, temperature: 0 };
/** What each field is given: values of every type, and of the right one beyond every limit. */
const VALUES: Packable[] = [
  ...[5, -1, 0.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, true, '', 'x', null, 3n],
  ...[[], [1], [-1], [2 ** 40], [[]], [[1], [2 ** 40]], [[], [null]], {}, { type: 'regex', guide: 5 }],
  ...[{ width: 1e9 }, { width: 'x' }, { tokens: -1, endToken: 1e9 }, { type: 'json', guide: '{"$ref":"#"}' }],
  ...[Int32Array.of(-1), Float32Array.of(Number.NaN), [Int32Array.of(2 ** 30)], [Float32Array.of(1)]],
  { tokens: Int32Array.of(-5, 1), values: Float64Array.of(Number.NaN, 1e308) },
];
const FIELDS: (keyof TokenRequest)[] = [
  ...([
    'promptTokens',
    'maxNewTokens',
    'promptEmbeddings',
    'positionIds',
    'endTokenIds',
    'stopWords',
  ] as const),
  ...(['badWords', 'allowedTokens', 'dryBreakers', 'reasoningBudget', 'logitBias', 'embeddingBias'] as const),
  ...([
    'returnLogProbs',
    'topLogProbs',
    'returnContextLogProbs',
    'topContextLogProbs',
    'numSequences',
  ] as const),
  ...(['firstSequenceIndex', 'knownOutputIds', 'beams', 'streaming', 'priority', 'timeLimitMs'] as const),
  ...([
    'cacheSalt',
    'retention',
    'logitsPostProcessor',
    'draftTokens',
    'draftLogits',
    'maxDraftLen',
  ] as const),
  ...([
    'guide',
    'label',
    'clientId',
    'temperature',
    'topK',
    'topP',
    'seed',
    'mirostat',
    'minLength',
  ] as const),
  ...(['noRepeatNgramSize', 'penaltyLastN', 'dryMultiplier', 'xtcProbability', 'typicalP'] as const),
];

/** Runs a request as a worker gets it. */
async function run(packed: unknown): Promise<number> {
  const request = unpackedRequest(unpack(pack(packed as Packable)));
  const numTokens = await Promise.all(
    host.submitSeveral(request).map(async (stream) => {
      let count = 0;
      for await (const { tokens } of stream) {
        count += tokens.length;
        // What would go on without end is left.
        if (count > 8) break;
      }
      return count;
    }),
  );
  return numTokens.reduce((sum, count) => sum + count, 0);
}

it.each(FIELDS)(
  'a request with any value in %s ends or is refused, and its engine lives on',
  async (field) => {
    const good = packedRequest(GOOD);
    await Promise.all(VALUES.map((value) => run({ ...good, [field]: value }).catch(() => {})));
    expect(await run(good)).toBe(2);
    expect(host.restarts).toBe(0);
  },
);
