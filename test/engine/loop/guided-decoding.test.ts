import { describe, expect, it } from 'vitest';
import { FINISH_END_ID } from '../../../callbacks/response-batch.js';
import type { Tensor } from '../../../callbacks/types.js';
import {
  f32,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  text,
  u64,
} from '../../../tools/support/loop-harness.js';
import { InlineGuideThread } from '../../support/inline-guide-thread.js';

/** The fake executor's vocabulary: digits, letters, some tokens of two; the others have no bytes. 99 ends an answer. */
const END = 99;
const ALPHABET = [...'0123456789abcdefghijklmnopqrstuvwxyz{}[]":, -', 'ab', '12', '":', '{"'];
const BYTES = Array.from({ length: 100 }, (_, token) =>
  ALPHABET[token] ? Buffer.from(ALPHABET[token]) : null,
);

const textOf = (tokens: readonly number[]) => tokens.map((token) => ALPHABET[token] ?? `<${token}>`).join('');
const sampled = (seed: bigint) => ({ temperature: f32(1.5), random_seed: u64(seed) });

function guided(
  type: string,
  guide: string | null,
  inputs: Record<string, Tensor> = {},
): Record<string, Tensor> {
  return {
    guided_decoding_guide_type: text(type),
    ...(guide === null ? {} : { guided_decoding_guide: text(guide) }),
    end_id: i32(END),
    ...inputs,
  };
}

function newHarness(options: HarnessOptions = {}): { harness: LoopHarness; thread: InlineGuideThread } {
  const thread = new InlineGuideThread(BYTES);
  return { harness: new LoopHarness({ ...options, guideThread: thread }), thread };
}

describe('a guided request', () => {
  it.each([0n, 1n, 2n, 3n])('has only answers that its guide allows, seed %s', (seed) => {
    const { harness } = newHarness();
    harness.run(
      makeRequest(1n, [50, 51], 40, guided('regex', '(ab|[0-9]{2})(-[a-f]{1,3}){1,4}', sampled(seed))),
    );
    const { tokens, finishReason } = harness.resultOf(1n);
    expect(textOf(tokens)).toMatch(/^(ab|[0-9]{2})(-[a-f]{1,3}){1,4}$/);
    expect(finishReason).toBe(FINISH_END_ID);
  });

  it('of which everything is said ends there', () => {
    const { harness } = newHarness();
    harness.run(makeRequest(1n, [50], 40, guided('regex', '7x9')));
    const { tokens, finishReason } = harness.resultOf(1n);
    expect([textOf(tokens), finishReason]).toEqual(['7x9', FINISH_END_ID]);
  });

  it.each<HarnessOptions>([
    {},
    { enableTrtOverlap: true, minMicroBatchSize: 1 },
    { stages: 3 },
    { modelType: 'InflightBatching' },
    { modelType: 'V1' },
    { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 8 },
  ])('answers in a crowd as alone, and changes no neighbour: %j', (options) => {
    const plain = (id: bigint) =>
      makeRequest(id, [60 + Number(id), 61], 30, { ...sampled(id), end_id: i32(END) });
    const follows = (id: bigint) =>
      makeRequest(
        id,
        [60 + Number(id), 62],
        30,
        guided('regex', '[0-9a-f]{26,28}', {
          ...sampled(id),
          return_log_probs: { shape: [1], data: Uint8Array.of(1) },
        }),
      );
    const { harness } = newHarness(options);
    for (let id = 0n; id < 6n; id++) harness.waiting.push(id % 2n === 0n ? plain(id) : follows(id));
    harness.runToEnd();
    for (let id = 0n; id < 6n; id++) {
      const alone = runAlone(id % 2n === 0n ? plain(id) : follows(id), {
        guideThread: new InlineGuideThread(BYTES),
      });
      expect(harness.resultOf(id)).toMatchObject({
        tokens: alone.tokens,
        logProbs: alone.logProbs,
        error: '',
      });
    }
    const pauses = harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
  });

  it('with several sequences guides each of them by itself', () => {
    const { harness } = newHarness();
    const inputs = { ...sampled(5n), num_return_sequences: i32(4) };
    harness.run(makeRequest(1n, [50], 30, guided('regex', '[a-f]{1,3}(-[0-9]{2})+', inputs)));
    const bySequence = new Map<number, string>();
    for (const { outputs } of harness.responses) {
      const sequence = Number(outputs.find(({ name }) => name === 'sequence_index')!.data[0]);
      const tokens = Array.from(outputs.find(({ name }) => name === 'output_ids')?.data ?? [], Number);
      bySequence.set(sequence, (bySequence.get(sequence) ?? '') + textOf(tokens));
    }
    expect(bySequence.size).toBe(4);
    expect(new Set(bySequence.values()).size).toBeGreaterThan(1);
    for (const answer of bySequence.values()) expect(answer).toMatch(/^[a-f]{1,3}(-[0-9]{2})+(-[0-9]?)?$/);
  });

  it('waits for its guide to be read; the others go on meanwhile', () => {
    const { harness, thread } = newHarness();
    thread.waitsToOpen = 3;
    harness.waiting.push(makeRequest(1n, [50], 8, guided('regex', '[0-9]{3}')), makeRequest(2n, [51], 4));
    for (let i = 0; i < 6; i++) harness.loop.iterate();
    expect(harness.resultOf(2n).tokens).toHaveLength(4);
    expect(harness.responses.some(({ requestId }) => requestId === 1n)).toBe(false);
    harness.runToEnd();
    expect(textOf(harness.resultOf(1n).tokens)).toMatch(/^[0-9]{3}$/);
  });

  it('can be stopped while its guide is read', () => {
    const { harness, thread } = newHarness();
    thread.waitsToOpen = 1_000_000;
    harness.waiting.push(makeRequest(1n, [50], 8, guided('json', null)));
    harness.loop.iterate();
    harness.stops.add(1n);
    harness.runToEnd();
    expect(harness.resultOf(1n)).toMatchObject({ tokens: [], error: '' });
    expect(thread.requests.at(-1)).toEqual({ type: 'close', first: 0, count: 1 });
  });
});

describe('a guided request that cannot go on fails alone', () => {
  const beside = makeRequest(2n, [51], 6);
  const alone = runAlone(beside);

  function runBeside(
    inputs: Record<string, Tensor>,
    prepare: (thread: InlineGuideThread) => void = () => {},
  ) {
    const { harness, thread } = newHarness();
    prepare(thread);
    harness.run(makeRequest(1n, [50], 30, inputs), beside);
    expect(harness.resultOf(2n)).toEqual(alone);
    return { error: harness.resultOf(1n).error, harness, thread };
  }

  it.each([
    ['json_schema', '{"not":{}}', 'No text matches the guide'],
    ['json_schema', '{', 'The JSON schema is not JSON'],
    ['regex', '(', 'a ( is not closed'],
    ['ebnf_grammar', 'root ::= root "a" | ""', 'left-recursive'],
    ['choice', '[]', 'a list of texts'],
  ])('where %s is %s', (type, guide, why) => {
    const { error, harness } = runBeside(guided(type, guide));
    expect(error).toContain(why);
    expect(harness.responses.find(({ requestId }) => requestId === 1n)!.outputs[0]!.name).toBe(
      'invalid_request',
    );
  });

  it('where no token of the vocabulary goes on', () => {
    expect(runBeside(guided('regex', '[0-9]é')).error).toBe(
      'The guide and what else bans tokens of this request leave no token for place 2 of the answer.',
    );
  });

  it('where a minimal length bans the end that is all that is left', () => {
    const { error, harness } = runBeside(guided('regex', '12', { min_length: i32(5) }));
    expect(error).toContain('leave no token for place 3 of the answer.');
    const response = harness.responses.findLast(({ requestId }) => requestId === 1n)!;
    expect(response.outputs[0]!.name).toBe('invalid_request');
  });

  it('where the thread dies twice while it is busy with it; the next one finds another thread', () => {
    let masks = 0;
    const { error, harness, thread } = runBeside(guided('regex', '[0-9]{20}'), (thread) => {
      thread.onRequest = ({ type }) => {
        if (type !== 'mask' || ++masks % 3 !== 0) return;
        thread.busyWith = 0;
        thread.stop();
      };
    });
    expect(error).toContain('The guide has ended the thread that follows guides twice');
    expect(harness.responses.findLast(({ requestId }) => requestId === 1n)!.outputs[0]!.name).toBe(
      'invalid_request',
    );
    harness.run(makeRequest(3n, [50], 30, guided('regex', '[0-9]{1}')));
    expect(textOf(harness.resultOf(3n).tokens)).toMatch(/^[0-9]$/);
    expect(thread.starts).toBe(3);
  });

  it('where no thread can be kept running', () => {
    const { error, thread } = runBeside(guided('json', null), (thread) => {
      thread.onRequest = ({ type }) => {
        if (type === 'open') thread.stop();
      };
    });
    expect(error).toContain('The thread that follows guides cannot be kept running');
    expect(thread.starts).toBeLessThan(10);
  });

  it.each<[Record<string, Tensor>, string]>([
    [{ guided_decoding_guide: text('a') }, 'guided_decoding_guide_type is missing'],
    [guided('xml', 'a'), 'guided_decoding_guide_type is "xml"; one of json, json_schema'],
    [guided('regex', null), 'guided_decoding_guide is missing'],
    [guided('regex', 'a', { end_id: i32(-1) }), 'without end_id'],
    [guided('regex', 'a'.repeat(300_000)), 'guided_decoding_guide is 300000 characters long'],
  ])('is refused where its tensors cannot work: %#', (inputs, why) => {
    expect(runBeside(inputs).error).toContain(why);
  });

  it('is refused where nothing follows guides', () => {
    expect(runAlone(makeRequest(1n, [50], 3, guided('json', null))).error).toContain(
      'this engine has no tokenizer',
    );
  });
});
