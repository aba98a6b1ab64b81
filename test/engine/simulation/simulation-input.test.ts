import { describe, expect, it } from 'vitest';
import { SimulationError, simulate } from '../../../engine/simulation/simulate.js';
import { SimulationInputError } from '../../../engine/simulation/simulation-input.js';

const REQUEST = { id: 'A', arrivalIteration: 0, promptLength: 4, maxNewTokens: 6 };
const INPUT = {
  policy: 'MAX_UTILIZATION',
  numBlocks: 4,
  tokensPerBlock: 4,
  maxNumRequests: 8,
  requests: [REQUEST],
};

function run(input: unknown): unknown {
  return simulate(input as Parameters<typeof simulate>[0]);
}

describe('the input of a simulation', () => {
  const id = `must be a text of 1 to 200 characters or a whole number from 0 to ${Number.MAX_SAFE_INTEGER}.`;
  it.each<[unknown, string]>([
    [null, 'The simulation is null; it must be an object.'],
    [[], 'The simulation is an array of 0; it must be an object.'],
    [
      { ...INPUT, policy: 'FAIR' },
      'policy is "FAIR"; it must be one of GUARANTEED_NO_EVICT, MAX_UTILIZATION, STATIC_BATCH.',
    ],
    [
      { ...INPUT, numBlocks: undefined },
      'numBlocks is missing; it must be a whole number from 1 to 10000000.',
    ],
    [{ ...INPUT, numBlocks: 0 }, 'numBlocks is 0; it must be a whole number from 1 to 10000000.'],
    [
      { ...INPUT, tokensPerBlock: 2.5 },
      'tokensPerBlock is 2.5; it must be a whole number from 1 to 1000000.',
    ],
    [
      { ...INPUT, numBlocks: 10_000_000, tokensPerBlock: 1000 },
      'numBlocks is 10000000; with tokensPerBlock = 1000 it must be at most 2147483.',
    ],
    [{ ...INPUT, maxNumTokens: '9' }, 'maxNumTokens is "9"; it must be a whole number from 1 to 2147483647.'],
    [
      { ...INPUT, chunk: { unit: 4 } },
      'chunk.policy is missing; it must be one of FIRST_COME_FIRST_SERVED, EQUAL_PROGRESS, SHORTEST_FIRST.',
    ],
    [
      { ...INPUT, chunk: { unit: 4, policy: 'EQUAL_PROGRESS', size: 3 } },
      'chunk has an unknown field size; fields: unit, policy, maxContextLength.',
    ],
    [{ ...INPUT, requests: {} }, 'requests is an object; it must be an array of requests.'],
    [{ ...INPUT, requests: [] }, 'requests is an array of 0; it must hold at least 1 request.'],
    [{ ...INPUT, requests: [REQUEST, 7] }, 'requests[1] is 7; it must be an object.'],
    [{ ...INPUT, requests: [{ ...REQUEST, id: -1 }] }, `requests[0].id is -1; it ${id}`],
    [{ ...INPUT, requests: [{ ...REQUEST, id: '' }] }, `requests[0].id is ""; it ${id}`],
    [
      { ...INPUT, requests: [REQUEST, { ...REQUEST, id: 'A' }] },
      'requests[1].id is "A"; it must differ from requests[0].id.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, promptLength: -3 }] },
      'requests[0].promptLength is -3; it must be a whole number from 1 to 1000000.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, arrivalIteration: 100_000 }] },
      'requests[0].arrivalIteration is 100000; it must be a whole number from 0 to 99999.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, tokens: [1] }] },
      'requests[0] must have either promptLength or tokens; it has both.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, promptLength: undefined }] },
      'requests[0] must have either promptLength or tokens; it has neither.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, promptLength: undefined, tokens: [1, -2] }] },
      'requests[0].tokens[1] is -2; it must be a whole number from 0 to 2147483647.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, priority: 2 }] },
      'requests[0].priority is 2; it must be a number from 0 to 1.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, maxTokens: 2 }] },
      'requests[0] has an unknown field maxTokens; fields: id, arrivalIteration, promptLength, tokens, ' +
        'maxNewTokens, beamWidth, priority, draftLength, loraTaskId.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, beamWidth: 0 }] },
      'requests[0].beamWidth is 0; it must be a whole number from 1 to 1024.',
    ],
    [
      { ...INPUT, requests: [{ ...REQUEST, loraTaskId: 3 }] },
      'requests[0].loraTaskId = 3 is refused: LoRA adapters are not simulated.',
    ],
    [
      { ...INPUT, maxAttentionWindow: 0 },
      'maxAttentionWindow is 0; it must be a whole number from 1 to 2147483647.',
    ],
    [{ ...INPUT, sinkTokenLength: 2 }, 'sinkTokenLength is 2; without maxAttentionWindow it must be 0.'],
    [
      { ...INPUT, maxAttentionWindow: 8, sinkTokenLength: 8 },
      'sinkTokenLength is 8; with maxAttentionWindow = 8 it must be at most 7.',
    ],
    [{ ...INPUT, enableBlockReuse: 'yes' }, 'enableBlockReuse is "yes"; it must be true or false.'],
  ])('%j is refused with field, value and limit', (input, message) => {
    expect(() => run(input)).toThrow(new SimulationInputError(message));
  });

  it.each<[string, object, string]>([
    [
      'more blocks than the pool has',
      { requests: [{ ...REQUEST, maxNewTokens: 13 }] },
      'requests[0] (id "A") can never run: The prompt of 4 tokens and 13 new tokens need 5 KV cache blocks of ' +
        '4 tokens; the pool has 4.',
    ],
    [
      'a prompt longer than an iteration',
      { maxNumTokens: 3 },
      'requests[0] (id "A") can never run: The prompt of 4 tokens does not fit into one iteration of ' +
        'maxNumTokens = 3; chunked context is off.',
    ],
    [
      'chunks that no iteration takes',
      { maxNumTokens: 3, chunk: { unit: 4, policy: 'EQUAL_PROGRESS' } },
      'requests[0] (id "A") can never run: The prompt of 4 tokens needs chunks of 4 tokens; an iteration takes at ' +
        'most 3 context tokens.',
    ],
  ])('what can never run is an error with the numbers: %s', (_, change, message) => {
    expect(() => run({ ...INPUT, ...change })).toThrow(new SimulationError(message));
  });

  it('ends after 100000 iterations with what is left', () => {
    const requests = [REQUEST, { ...REQUEST, id: 'B' }].map((one) => ({ ...one, maxNewTokens: 60_000 }));
    const input = { ...INPUT, policy: 'GUARANTEED_NO_EVICT', numBlocks: 16_000, requests };
    expect(() => run(input)).toThrow(
      /^After 100000 iterations 1 requests are active and 0 to come; .* 100000 iter/,
    );
  });
});
