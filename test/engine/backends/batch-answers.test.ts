import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_ANSWERS } from '../../../callbacks/infer/answer-limits.js';
import { AnswerFlow, SLICES_UNDER_WAY } from '../../../engine/backends/answer-flow.js';
import { BatchAnswers, SLICE_ANSWERS } from '../../../engine/backends/batch-answers.js';

const tensor = (value: number, length = 1) => ({
  name: 'Y',
  datatype: 'UINT8' as const,
  shape: [length],
  data: new Uint8Array(length).fill(value),
});

/** A flow whose messages are kept, with the number of its unreleased holds of the thread. */
function opened() {
  const sent: number[][] = [];
  let held = 0;
  const flow = new AnswerFlow(
    ({ responses, bytes }) => sent.push(responses.map(({ outputs }) => bytes[outputs[0]!.offset]!)),
    { hold: () => held++, release: () => held-- },
  );
  return { sent, flow, held: () => held };
}

const isSettled = async (promise: Promise<void>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

describe('answers of a decoupled model', () => {
  it('go some to a message, and at most so many messages before the host has taken one', async () => {
    const { sent, flow, held } = opened();
    const answers = new BatchAnswers(flow, 1, true, null);
    const total = SLICE_ANSWERS * (SLICES_UNDER_WAY + 2);
    for (let i = 0; i < total; i++) answers.respond(0, [tensor(i % 251)], null);
    expect(sent.map(({ length }) => length)).toEqual(Array(SLICES_UNDER_WAY).fill(SLICE_ANSWERS));
    expect([await isSettled(answers.room), held()]).toEqual([false, 1]);
    flow.noteTaken();
    expect([sent.length, await isSettled(answers.room)]).toEqual([SLICES_UNDER_WAY + 1, false]);
    flow.noteTaken();
    expect([await isSettled(answers.room), held()]).toEqual([true, 0]);
    expect(sent.flat()).toEqual(Array.from({ length: total }, (_, i) => i % 251));
  });

  it('go at the end of the turn where they fill no message', async () => {
    const { sent, flow } = opened();
    const answers = new BatchAnswers(flow, 1, true, null);
    answers.respond(0, [tensor(1)], null);
    expect(sent).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toEqual([[1]]);
  });

  it('go one to a message where they are large', () => {
    const { sent, flow } = opened();
    const answers = new BatchAnswers(flow, 1, true, null);
    for (let i = 0; i < 3; i++) answers.respond(0, [tensor(i, 2 ** 20)], null);
    expect(sent).toEqual([[0], [1], [2]]);
  });

  it('are too many for one request, and not for another', () => {
    const { flow } = opened();
    const answers = new BatchAnswers(flow, 2, true, null);
    let count = 0;
    for (; answers.whyFull(0) === null; count++) answers.respond(0, [tensor(1)], null);
    expect(count).toBe(MAX_ANSWERS + SLICES_UNDER_WAY * SLICE_ANSWERS);
    expect(answers.whyFull(0)).toContain('more than 10,000 answers or 64 MiB');
    expect(answers.whyFull(1)).toBeNull();
    flow.noteTaken();
    expect(answers.whyFull(0)).toBeNull();
    while (answers.whyFull(1) === null) answers.respond(1, [tensor(1, 2 ** 22)], null);
    expect(answers.whyFull(0)).toBeNull();
  });

  it('end once all before them are sent', async () => {
    const { sent, flow } = opened();
    const answers = new BatchAnswers(flow, 1, true, null);
    for (let i = 0; i < SLICE_ANSWERS * 6 + 1; i++) answers.respond(0, [tensor(1)], null);
    answers.end(0);
    const finished = answers.finish();
    expect(await isSettled(finished.then(() => {}))).toBe(false);
    for (let i = 0; i < 2; i++) flow.noteTaken();
    const { responses, ended } = await finished;
    expect([sent.length, responses.length, ended]).toEqual([6, 1, [0]]);
  });

  it('are each sent once and in order, however the host takes them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: -3, max: 200 }), { maxLength: 30 }), async (steps) => {
        const { sent, flow, held } = opened();
        const answers = new BatchAnswers(flow, 1, true, null);
        let next = 0;
        for (const step of steps) {
          for (let i = 0; i < step; i++) answers.respond(0, [tensor(next++ % 251)], null);
          for (let i = step; i < 0; i++) flow.noteTaken();
        }
        const finished = answers.finish();
        for (let i = 0; i < 200; i++) flow.noteTaken();
        const { responses, bytes } = await finished;
        const rest = responses.map(({ outputs }) => bytes[outputs[0]!.offset]!);
        expect([...sent.flat(), ...rest]).toEqual(Array.from({ length: next }, (_, i) => i % 251));
        expect(held()).toBe(0);
      }),
    );
  });
});

describe('answers of another model', () => {
  it('go together with the end of the batch', async () => {
    const { sent, flow } = opened();
    const answers = new BatchAnswers(flow, 300, false, null);
    for (let i = 0; i < 300; i++) answers.respond(i, [tensor(1)], null);
    expect((await answers.finish()).responses).toHaveLength(300);
    expect(sent).toEqual([]);
  });
});
