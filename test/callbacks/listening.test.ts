import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenPiece, TokenRequest, TokenStream } from '../../callbacks/token-request.js';
import { InProcessHost } from '../../dist/host/in-process-host.js';
import { fakeEngine } from '../support/fake-engine.js';

const ASK: TokenRequest = { promptTokens: [5, 6, 7, 8, 9], maxNewTokens: 20, temperature: 1, seed: 3n };

let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost(fakeEngine('stepMs=1'));
  await host.ready;
});
afterAll(() => host.close({ abort: true }));

/** Listens to the end; `onPiece` may pause or leave. */
function listen(stream: TokenStream, onPiece: (piece: TokenPiece, count: number) => void = () => {}) {
  const pieces: TokenPiece[] = [];
  return new Promise<TokenPiece[]>((resolve, reject) => {
    stream.listen({
      onPiece: (piece) => {
        onPiece(piece, pieces.push(piece));
        if (piece.finishReason !== null) resolve(pieces);
      },
      onError: reject,
    });
  });
}

const tokensOf = (pieces: readonly TokenPiece[]) => pieces.flatMap(({ tokens }) => [...tokens]);

describe('a listener', () => {
  it('hears what a loop would get, each token in a piece of its own', async () => {
    const looped: TokenPiece[] = [];
    for await (const piece of host.submit(ASK)) looped.push(piece);
    const heard = await listen(host.submit(ASK));
    expect(tokensOf(heard)).toEqual(tokensOf(looped));
    expect(heard.filter(({ tokens }) => tokens.length > 0)).toHaveLength(20);
    expect(heard.at(-1)).toMatchObject({ finishReason: 'length', seed: 3n });
  });

  it('that comes late hears at once what there is', async () => {
    const stream = host.submit(ASK);
    while (host.running + host.queued > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    let heard = 0;
    const ended = listen(stream, () => {
      heard++;
    });
    expect(heard).toBe(1);
    expect(tokensOf(await ended)).toHaveLength(20);
  });

  it('that pauses gets what came meanwhile as one piece', async () => {
    const whole = tokensOf(await listen(host.submit(ASK)));
    const stream = host.submit(ASK);
    let atPause = 0;
    const ended = listen(stream, (_, count) => {
      if (count !== 3) return;
      stream.pause();
      atPause = count;
    });
    while (host.running + host.queued > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(atPause).toBe(3);
    stream.resume();
    const heard = await ended;
    expect(heard).toHaveLength(4);
    expect(tokensOf(heard)).toEqual(whole);
  });

  it('that leaves hears nothing more, and its request is cancelled', async () => {
    const stream = host.submit({ ...ASK, maxNewTokens: 200 });
    let heard = 0;
    void listen(stream, () => {
      heard++;
      stream.leave();
    });
    await expect.poll(() => heard).toBe(1);
    await expect.poll(() => host.running).toBe(0);
    expect(heard).toBe(1);
  });

  it('hears of an error once, behind the pieces before it', async () => {
    await expect(listen(host.submit({ ...ASK, temperature: -1 }))).rejects.toThrow('temperature');
  });
});

describe('one signal of many requests', () => {
  it('has one listener while they run, and none behind them', async () => {
    const abort = new AbortController();
    const { signal } = abort;
    const asked = { ...ASK, maxNewTokens: 200, signal };
    const short = listen(host.submit({ ...ASK, maxNewTokens: 1, signal }));
    const kept = Array.from({ length: 12 }, () => listen(host.submit(asked)));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expect((await short).at(-1)!.finishReason).toBe('length');
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    abort.abort();
    const ends = await Promise.all(kept);
    expect(ends.map((pieces) => pieces.at(-1)!.finishReason)).toEqual(Array(12).fill('cancelled'));
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
