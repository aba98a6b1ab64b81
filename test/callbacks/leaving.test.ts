import type { TokenPiece, TokenStream } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { LoopHarness, makeRequest } from '../../tools/support/loop-harness.js';
import { SteppedHost, TOKENS_PER_BLOCK } from '../support/stepped-host.js';

const hosts: SteppedHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});

function start(params: OptionalParams = {}): SteppedHost {
  const stepped = new SteppedHost(params);
  hosts.push(stepped);
  return stepped;
}

async function read(stream: TokenStream): Promise<TokenPiece[]> {
  const pieces: TokenPiece[] = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

describe('a client that leaves while an iteration runs', () => {
  it.each(['by its signal', 'by cancel', 'by leaving its loop'])(
    'has no block at the end of that very iteration (%s); who stays keeps its own',
    async (how) => {
      const stepped = start();
      const controller = new AbortController();
      const promptTokens = Array(2 * TOKENS_PER_BLOCK).fill(1);
      const request = { promptTokens, maxNewTokens: 200, temperature: 0 };
      const leaver = stepped.host.submit({ ...request, signal: controller.signal });
      const stayer = stepped.host.submit({ ...request, maxNewTokens: 6 });
      const staying = read(stayer);
      await stepped.running(1);
      // Both prompts fill their blocks; the first tokens open another one each in the next iteration.
      expect(await stepped.finish(1)).toMatchObject({ heldBlocks: 4, activeRequests: 2 });
      await stepped.running(2);
      expect(await stepped.finish(2)).toMatchObject({ heldBlocks: 6 });
      await stepped.running(3);
      if (how === 'by its signal') controller.abort();
      else if (how === 'by cancel') stepped.host.cancel(leaver.requestId);
      else for await (const piece of leaver) if (piece.tokens.length > 0) break;
      expect(await stepped.finish(3)).toMatchObject({
        heldBlocks: 3,
        activeRequests: 2,
        completedRequests: 1,
      });
      for (const iteration of [4, 5]) {
        await stepped.running(iteration);
        expect(await stepped.finish(iteration)).toMatchObject({ heldBlocks: 3, activeRequests: 1 });
      }
      await stepped.running(6);
      expect(await stepped.finish(6)).toMatchObject({ heldBlocks: 0 });
      expect((await staying).flatMap((piece) => [...piece.tokens])).toHaveLength(6);
      expect(stepped.host.running).toBe(0);
    },
  );

  it('between two chunks of its context', async () => {
    const stepped = start({ enableChunkedContext: true, maxNumTokens: 2 * TOKENS_PER_BLOCK });
    const controller = new AbortController();
    const promptTokens = Array(12 * TOKENS_PER_BLOCK).fill(1);
    const pieces = read(stepped.host.submit({ promptTokens, maxNewTokens: 9, signal: controller.signal }));
    await stepped.running(1);
    await stepped.finish(1);
    await stepped.running(2);
    controller.abort();
    expect(await stepped.finish(2)).toMatchObject({ contextTokens: 2 * TOKENS_PER_BLOCK, heldBlocks: 0 });
    expect(await pieces).toMatchObject([{ finishReason: 'cancelled' }]);
  });

  it('together with half of a crowd: the blocks of all of them come back at once', async () => {
    const stepped = start({ maxNumSequences: 16 });
    const controllers = Array.from({ length: 16 }, () => new AbortController());
    const streams = controllers.map(({ signal }, index) =>
      read(stepped.host.submit({ promptTokens: [index, 1], maxNewTokens: 40, temperature: 0, signal })),
    );
    let iteration = 1;
    // Requests reach the worker while it already computes: until all are in, one iteration more.
    for (let active = 0; active < 16; iteration++) {
      await stepped.running(iteration);
      active = (await stepped.finish(iteration)).activeRequests;
    }
    await stepped.running(iteration);
    for (const [index, controller] of controllers.entries()) if (index % 2 === 1) controller.abort();
    expect(await stepped.finish(iteration)).toMatchObject({
      activeRequests: 16,
      completedRequests: 8,
      heldBlocks: 8,
    });
    for (const controller of controllers) controller.abort();
    await stepped.running(++iteration);
    expect((await stepped.finish(iteration)).heldBlocks).toBe(0);
    for (const stream of streams) expect((await stream).at(-1)!.finishReason).toBe('cancelled');
  });
});

describe('a stop signal in the loop', () => {
  it('that comes during the step counts in that iteration, one that comes after the poll in the next', () => {
    for (const comes of ['step', 'report'] as const) {
      const harness = new LoopHarness();
      harness.waiting.push(makeRequest(1n, [1, 2, 3], 50));
      harness.loop.iterate();
      const { numSteps } = harness.executor;
      if (comes === 'step') {
        const step = harness.executor.step.bind(harness.executor);
        harness.executor.step = (...batch) => {
          harness.stops.add(1n);
          step(...batch);
        };
      } else {
        harness.onResponse = () => harness.stops.add(1n);
      }
      harness.loop.iterate();
      expect(harness.kvCache.hasSequence(1n)).toBe(comes === 'report');
      harness.onResponse = () => {};
      if (comes === 'report') harness.loop.iterate();
      expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
      expect(harness.executor.numSteps - numSteps).toBe(comes === 'report' ? 2 : 1);
      expect(harness.loop.iterate()).toBe(false);
    }
  });
});
