import { CallbackError, InProcessHost, type TokenPiece } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { EncoderHost } from '../../dist/host/encoder-host.js';
import { fakeEngine } from '../support/fake-engine.js';

const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => void unhandled.push(reason));
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  expect(unhandled).toEqual([]);
});

const ASK = { promptTokens: [5, 6, 7], maxNewTokens: 8, temperature: 0 };
const ACTS: [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('on purpose');
    },
  ],
  ['is rejected', () => Promise.reject(new Error('on purpose'))],
];

async function tokensOf(stream: AsyncIterable<TokenPiece>): Promise<number[]> {
  const tokens: number[] = [];
  for await (const piece of stream) tokens.push(...piece.tokens);
  return tokens;
}

describe.each(ACTS)('in a host, what %s', (_, act) => {
  it('is told to onError by its name, with the request, and neither the request nor others lose anything', async () => {
    const errors: CallbackError[] = [];
    const host = new InProcessHost({
      ...fakeEngine(),
      onError: (error) => void errors.push(error as CallbackError),
      onStats: () => act() as undefined,
      onIterationStats: () => act() as undefined,
      onStateChange: () => act() as undefined,
    });
    closing.push(() => host.close());
    host.watchFormation(() => act() as undefined, 1);
    const formations: number[] = [];
    host.watchFormation(({ timeMs }) => void formations.push(timeMs), 1);
    const heard: TokenPiece[] = [];
    const stream = host.submit(ASK);
    const ended = new Promise<void>((resolve) =>
      stream.listen({
        onPiece: (piece) => {
          heard.push(piece);
          if (piece.finishReason !== null) resolve();
          return act() as undefined;
        },
        onError: () => {},
      }),
    );
    const alone = await tokensOf(host.submit(ASK));
    await ended;
    expect(heard.flatMap(({ tokens }) => [...tokens])).toEqual(alone);
    await expect.poll(() => formations.length).toBeGreaterThan(0);
    const names = () => new Set(errors.map(({ callback }) => callback));
    const all = ['onStateChange', 'onPiece', 'returnBatchManagerStats', 'onIterationStats', 'watchFormation'];
    for (const name of all) await expect.poll(names).toContain(name);
    expect(errors.every((error) => error instanceof CallbackError)).toBe(true);
    const ofPieces = errors.filter(({ callback }) => callback === 'onPiece');
    expect(new Set(ofPieces.map(({ requestId }) => requestId))).toEqual(new Set([stream.requestId]));
  });

  it('as a listener of an end, keeps nobody else from theirs', async () => {
    const host = new InProcessHost({ ...fakeEngine('failToLoad=no engine'), onError: () => {} });
    host.submit(ASK).listen({ onPiece: () => {}, onError: () => act() as undefined });
    const other = tokensOf(host.submit(ASK));
    await expect(other).rejects.toThrow('The engine failed: ');
    await host.close();
    expect([host.running, host.queued]).toEqual([0, 0]);
  });

  it('of an encoder, is told to onError and takes no rows', async () => {
    const errors: string[] = [];
    const encoders = new EncoderHost({
      enginePath: 'fake',
      params: {},
      encoderModule: new URL('../support/modules/fake-encoder.mjs', import.meta.url),
      onBatch: () => act() as undefined,
      onStateChange: () => act() as undefined,
      onError: (error) => {
        errors.push(error.message);
        return act() as undefined;
      },
    });
    closing.push(() => encoders.close());
    const rows = await encoders.encode([{ tokenIds: Int32Array.of(1, 2), tokenTypes: null }]);
    expect(rows[0]![0]).toBe(3);
    await expect.poll(() => errors).toContain('The callback onBatch failed: on purpose');
    await encoders.close();
    expect(encoders.state).toBe('stopped');
  });
});
