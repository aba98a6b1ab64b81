import { describe, expect, it } from 'vitest';
import { MAX_ANSWER_BYTES, MAX_ANSWERS } from '../../../callbacks/infer/answer-limits.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { answerCall } from '../../../src/serving/answer-call.js';

const CALL = { model: 'counts', version: '', inputs: [], outputs: null, parameters: {}, sequence: null };
const output = (bytes: number) =>
  ({ name: 'Y', datatype: 'UINT8', shape: [bytes], data: new Uint8Array(bytes) }) as const;

/** A model that gives answers of these sizes, as far as it is not asked to stop. */
function counting(numAnswers: number, bytes: number, isDecoupled = true) {
  const model = {
    config: { model_transaction_policy: { decoupled: isDecoupled } } as ModelConfig,
    numGiven: 0,
    infer({ signal }: InferRequest, on: InferListener) {
      for (let i = 0; i < numAnswers && signal?.aborted !== true; i++) {
        model.numGiven++;
        on.response({ outputs: [output(bytes)] });
      }
      if (signal?.aborted !== true) on.end();
    },
  };
  return model;
}

const NEVER = new AbortController().signal;
const ask = (model: ReturnType<typeof counting>, decoupled: boolean, signal = NEVER) =>
  answerCall(model, { ...CALL, decoupled }, 1, signal);

describe('the answer to a call of a model', () => {
  it('is the first one, or all of them', async () => {
    expect(await ask(counting(3, 1), false)).toHaveLength(1);
    expect(await ask(counting(3, 1), true)).toHaveLength(3);
    expect(await ask(counting(0, 1), true)).toEqual([]);
  });

  it('is the first one of a decoupled model without waiting for more, which are cancelled', async () => {
    const endless = counting(Number.POSITIVE_INFINITY, 1);
    expect(await ask(endless, false)).toHaveLength(1);
    expect(endless.numGiven).toBe(1);
    const one = counting(1, 1, false);
    expect(await ask(one, false)).toHaveLength(1);
  });

  it('is not waited for when the batch that asks is over', async () => {
    const over = new AbortController();
    let signal: AbortSignal | undefined;
    const silent = {
      ...counting(0, 1),
      infer(request: InferRequest, on: InferListener) {
        signal = request.signal;
        signal?.addEventListener('abort', () => on.fail(new InferError('cancelled', 'unavailable')));
      },
    };
    const answer = ask(silent, true, over.signal);
    over.abort();
    await expect(answer).rejects.toThrow('cancelled');
    await expect(ask(counting(1, 1), true, over.signal)).rejects.toThrow('aborted');
  });

  it('counts the parameters of answers, too', async () => {
    const parameters = { text: 'x'.repeat(MAX_ANSWER_BYTES / 8) };
    const talking = {
      ...counting(0, 1),
      infer(_: InferRequest, on: InferListener) {
        for (let i = 0; i < 9; i++) on.response({ outputs: [output(1)], parameters });
      },
    };
    await expect(ask(talking, true)).rejects.toThrow('gives more than 10,000 answers or 64 MiB');
  });

  it.each([
    [MAX_ANSWERS, 1],
    [64, MAX_ANSWER_BYTES / 64],
  ])(
    'has its bounds: %i answers of %i bytes are given, one more is refused, and the model is told to stop',
    async (count, bytes) => {
      expect(await ask(counting(count, bytes), true)).toHaveLength(count);
      const endless = counting(Number.POSITIVE_INFINITY, bytes);
      await expect(ask(endless, true)).rejects.toThrow(
        "the model 'counts' gives more than 10,000 answers or 64 MiB, which is what one call may be given",
      );
      expect(endless.numGiven).toBe(count + 1);
    },
  );
});
