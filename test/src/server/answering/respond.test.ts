import { expect, it, vi } from 'vitest';
import { NoWorkerError } from '../../../../callbacks/token-request.js';
import type { TextPiece } from '../../../../src/generation/text-generation.js';
import { type AnswerRun, respondWithStream } from '../../../../src/server/answering/respond.js';
import { DEFAULT_EVENT_STREAM_OPTIONS } from '../../../../src/server/web/event-stream.js';
import type { Exchange } from '../../../../src/server/web/exchange.js';

const PIECE = { text: 'a', tokens: [1], logProbs: [], finishReason: 'stop', stopReason: null } as TextPiece;

/** A stream whose run the test plays, and which breaks its silence at once. */
function setUp() {
  let asked = 0;
  let onPiece: (choice: number, piece: TextPiece) => void = () => {};
  let end: (error?: unknown) => void = () => {};
  const run = {
    isTaken: false as boolean,
    get isWaiting() {
      asked += 1;
      return !this.isTaken;
    },
    consume: (listener: typeof onPiece) => {
      onPiece = listener;
      return new Promise<void>((resolve, reject) => {
        end = (error) => (error === undefined ? resolve() : reject(error));
      });
    },
    ...{ pause: () => {}, resume: () => {}, abort: () => {} },
  } satisfies AnswerRun & { isTaken: boolean };
  const exchange = { signal: new AbortController().signal, connection: null, logError: () => {} };
  const writer = { piece: (_: number, { text }: TextPiece) => `data: ${text}\n\n`, end: () => '' };
  const options = { ...DEFAULT_EVENT_STREAM_OPTIONS, keepAliveMs: 2 };
  const answer = respondWithStream(run, writer, options, exchange as unknown as Exchange);
  let hasAnswered = false;
  void answer.then(
    () => {
      hasAnswered = true;
    },
    () => {},
  );
  /** Its silence was to be broken, and more than once. */
  const untilAsked = () => vi.waitFor(() => expect(asked).toBeGreaterThan(2), 120_000);
  return {
    ...{ run, answer, untilAsked, hasAnswered: () => hasAnswered },
    ...{ tell: () => onPiece(0, PIECE), end: (error?: unknown) => end(error) },
  };
}

it('a stream whose request waits for a worker has no head, and so can still be refused', async () => {
  const { answer, untilAsked, hasAnswered, end } = setUp();
  await untilAsked();
  expect(hasAnswered()).toBe(false);
  const error = new NoWorkerError('No worker has the model.');
  end(error);
  await expect(answer).rejects.toBe(error);
});

it('a stream has its head, and breaks its silence, once a worker has the request', async () => {
  const { run, answer, untilAsked, tell, end } = setUp();
  await untilAsked();
  run.isTaken = true;
  const { status, body } = await answer;
  expect(status).toBe(200);
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toMatch(/^: keep-alive/);
  tell();
  end();
  let text = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  expect(text.replaceAll(': keep-alive\n\n', '')).toBe('data: a\n\ndata: [DONE]\n\n');
});

it('a stream that a worker has not told of has its head with the first frame', async () => {
  const { answer, tell, end } = setUp();
  tell();
  const { status, body } = await answer;
  expect(status).toBe(200);
  end();
  expect((await new Response(body).text()).replaceAll(': keep-alive\n\n', '')).toBe(
    'data: a\n\ndata: [DONE]\n\n',
  );
});
