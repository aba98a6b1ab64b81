import { GptManager, type GptManagerOptions, type InferenceRequest } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { Response } from '../../callbacks/unpack-responses.js';
import { collectResult, makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';

const OVERLAP: OptionalParams = { enableTrtOverlap: true, minMicroBatchSize: 1 };
const running: OverlapClient[] = [];
afterEach(() => Promise.all(running.splice(0).map(({ manager }) => manager.shutdown())));

/** A host whose engine has a worker with two micro-batches of the fake executor, each step 3 ms long. */
class OverlapClient {
  readonly manager: GptManager;
  readonly stops = new Set<bigint>();
  readonly microBatchIds = new Set<number>();
  readonly #responses = new Map<bigint, Response[]>();
  readonly #waiting: InferenceRequest[] = [];
  #changed = () => {};

  constructor(
    engine = 'stepMs=3',
    params: OptionalParams = {},
    modelType: ModelType = 'InflightFusedBatching',
  ) {
    this.manager = new GptManager({
      ...fakeEngine(engine, { ...OVERLAP, ...params }),
      modelType,
      getInferenceRequests: (max) => this.#waiting.splice(0, max),
      sendResponse: (requestId, outputs, final, error) => {
        this.#responses.set(requestId, [
          ...this.responsesOf(requestId),
          { requestId, outputs, final, error },
        ]);
        this.#changed();
      },
      pollStopSignals: () => new Set([...this.stops].filter((id) => this.stops.delete(id))),
      returnBatchManagerStats: (json) => {
        this.microBatchIds.add(JSON.parse(json)['MicroBatch ID']);
      },
    } as GptManagerOptions);
    running.push(this);
  }

  responsesOf(requestId: bigint): readonly Response[] {
    return this.#responses.get(requestId) ?? [];
  }

  submit(...requests: InferenceRequest[]): void {
    this.#waiting.push(...requests);
    this.manager.wake();
  }

  /** Resolves when the condition holds; asked after each response. */
  until(isTrue: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = () => {
        if (isTrue()) resolve();
      };
      this.#changed();
    });
  }

  hasEnded(requestId: bigint): boolean {
    return this.responsesOf(requestId).at(-1)?.final === true;
  }
}

const crowd = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, i) => makeRequest(BigInt(i + 1), [i + 1, 5], tokens));
const MAX_SEQ_LEN = { maxSeqLen: 256 };

describe('a manager with overlap', () => {
  it('drains on shutdown: the step in flight ends, and so does all that is active', async () => {
    const client = new OverlapClient();
    const requests = crowd(4, 30);
    client.submit(...requests);
    await client.until(() => requests.every(({ requestId }) => client.responsesOf(requestId).length > 1));
    await client.manager.shutdown();
    expect(client.manager.state).toBe('stopped');
    for (const request of requests) {
      expect(collectResult([...client.responsesOf(request.requestId)])).toMatchObject({
        tokens: runAlone(request, MAX_SEQ_LEN).tokens,
        error: '',
      });
    }
    expect(client.microBatchIds).toEqual(new Set([0, 1]));
  });

  it('stops a request on its signal while others go on', async () => {
    const client = new OverlapClient();
    const requests = crowd(4, 240);
    client.submit(...requests);
    await client.until(() => client.responsesOf(2n).length > 2);
    client.stops.add(2n);
    client.manager.wake();
    await client.until(() => client.hasEnded(2n));
    const result = collectResult([...client.responsesOf(2n)]);
    expect(result).toMatchObject({ finishReason: 5, error: '' });
    const alone = runAlone(requests[1]!, MAX_SEQ_LEN).tokens;
    expect(result.tokens).toEqual(alone.slice(0, result.tokens.length));
    expect([1n, 3n, 4n].some((id) => client.hasEnded(id))).toBe(false);
  });

  it('that is terminated ends at once, with a step in flight', async () => {
    const client = new OverlapClient('stepMs=20');
    client.submit(...crowd(4, 200));
    await client.until(() => client.responsesOf(1n).length > 0);
    await client.manager.terminate('Enough.');
    for (const id of [1n, 2n, 3n, 4n]) expect(client.responsesOf(id).at(-1)!.error).toContain('Enough.');
  });

  it('whose worker dies in a step fails all that was active with the reason', async () => {
    const client = new OverlapClient('dieToken=66&stepMs=2', { workerRestart: false });
    client.submit(...crowd(3, 200), makeRequest(9n, [66], 5));
    await client.until(() => [1n, 2n, 3n, 9n].every((id) => client.hasEnded(id)));
    for (const id of [1n, 2n, 3n, 9n]) {
      expect(client.responsesOf(id).at(-1)!.error).toMatch(/ended unexpectedly with exit code 1/);
    }
  });

  it('is refused with V1, by name', () => {
    expect(() => new OverlapClient('', {}, 'V1')).toThrow('enableTrtOverlap is refused: V1 runs one batch');
  });

  it('refuses micro-batches of no request', () => {
    expect(() => new OverlapClient('', { minMicroBatchSize: 0 })).toThrow(/minMicroBatchSize/);
  });
});
