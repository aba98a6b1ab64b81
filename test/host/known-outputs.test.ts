import { InProcessHost, RequestError, type TokenPiece, type TokenRequest, type TokenStream } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fakeEngine } from '../support/fake-engine.js';

const ASK: TokenRequest = {
  promptTokens: [5, 6, 7, 8, 9, 10, 11, 12, 13],
  maxNewTokens: 12,
  temperature: 1,
  seed: 3n,
  returnLogProbs: true,
  topLogProbs: 2,
};

let host: InProcessHost;
let elsewhere: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost(fakeEngine());
  elsewhere = new InProcessHost(fakeEngine('', { enableChunkedContext: true }));
  await Promise.all([host.ready, elsewhere.ready]);
});
afterAll(() => Promise.all([host.close(), elsewhere.close()]));

/** All pieces of a stream as one. */
async function collect(stream: TokenStream) {
  const pieces: TokenPiece[] = [];
  for await (const piece of stream) pieces.push(piece);
  return {
    tokens: pieces.flatMap(({ tokens }) => [...tokens]),
    logProbs: pieces.flatMap(({ logProbs }) => [...(logProbs ?? [])]),
    topTokens: pieces.flatMap(({ topTokens }) => [...(topTokens ?? [])]),
    finishReason: pieces.at(-1)!.finishReason,
  };
}
type Collected = Awaited<ReturnType<typeof collect>>;

const behind = ({ tokens, logProbs, topTokens, finishReason }: Collected, cut: number): Collected => ({
  tokens: tokens.slice(cut),
  logProbs: logProbs.slice(cut),
  topTokens: topTokens.slice(2 * cut),
  finishReason,
});

describe.each([true, false])('a request with knownOutputIds, streaming %s', (streaming) => {
  it('goes on in another host behind any of its tokens, and brings what is new', async () => {
    const whole = await collect(host.submit(ASK));
    expect(whole.tokens).toHaveLength(12);
    for (let cut = 0; cut <= 12; cut++) {
      const knownOutputIds = [whole.tokens.slice(0, cut)];
      const rest = await collect(elsewhere.submit({ ...ASK, streaming, knownOutputIds }));
      expect(rest).toEqual(behind(whole, cut));
    }
  });

  it('ends as it had ended, by any of its end tokens, which are no part of it', async () => {
    const free = await collect(host.submit(ASK));
    const [second, third] = free.tokens.slice(7);
    for (const endTokenIds of [
      [second!, 98],
      [98, second!, third!],
    ]) {
      const ask = { ...ASK, endTokenIds };
      const whole = await collect(host.submit(ask));
      expect(whole).toMatchObject({ tokens: free.tokens.slice(0, 7), finishReason: 'stop' });
      for (const known of [free.tokens.slice(0, 7), free.tokens.slice(0, 8)]) {
        const rest = await collect(elsewhere.submit({ ...ask, streaming, knownOutputIds: [known] }));
        expect(rest).toEqual({ tokens: [], logProbs: [], topTokens: [], finishReason: 'stop' });
      }
    }
  });

  it('goes on with each of its sequences behind its own', async () => {
    const ask = { ...ASK, numSequences: 3 };
    const whole = await Promise.all(host.submitSeveral(ask).map(collect));
    const cuts = [4, 9, 0];
    const knownOutputIds = cuts.map((cut, i) => Int32Array.from(whole[i]!.tokens.slice(0, cut)));
    const streams = elsewhere.submitSeveral({ ...ask, streaming, knownOutputIds });
    const rest = await Promise.all(streams.map(collect));
    expect(rest).toEqual(whole.map((one, i) => behind(one, cuts[i]!)));
  });
});

describe('knownOutputIds that cannot be', () => {
  it.each([
    [
      [[1, 2], [3]],
      'known_output_ids has 2 rows; the request generates 1 sequence in all, and each has one row at most.',
    ],
    [[[1, -1, 2]], 'knownOutputIds[0] holds -1 at place 1; tokens are from 0 on.'],
    [[[1.5]], 'knownOutputIds[0] holds 1.5 at place 0; whole numbers are expected.'],
    [[7, 8], 'knownOutputIds[0] is 7; a list of tokens for each sequence is expected.'],
    [[null], 'knownOutputIds[0] is null; a list of tokens for each sequence is expected.'],
    [
      [{ length: 2 }],
      'knownOutputIds[0] is [object Object]; a list of tokens for each sequence is expected.',
    ],
    [5, 'knownOutputIds is 5; lists of tokens are expected, one for each sequence.'],
    ['ab', 'knownOutputIds is ab; lists of tokens are expected, one for each sequence.'],
    [null, 'knownOutputIds is null; lists of tokens are expected, one for each sequence.'],
    [
      [[1000]],
      'known_output_ids holds 1000 at [0, 0]; tokens are from 0 to 99, and -1 after the last one of a row.',
    ],
  ])('%j: are refused with one sentence', async (lists, message) => {
    const knownOutputIds = lists as number[][];
    const failure = await collect(host.submit({ ...ASK, knownOutputIds })).catch((error) => error);
    expect(failure).toBeInstanceOf(RequestError);
    expect(failure).toMatchObject({ message, isInvalid: true });
  });
});
