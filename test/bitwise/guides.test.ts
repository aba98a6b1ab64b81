import { afterAll, describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { bool, f32, i32, text } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { madeModelPath } from '../support/made-models.js';
import { RandomDrafts } from '../support/random-drafts.js';
import { type Answer, type RunOptions, runAlone, runLoop, sequenceKey } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const NEIGHBOURS = 14;
const SEQUENCES = 4;
const MAX_SEQ_LEN = 160;
const POOL = 400;
/** After the pool: what V1 pads with. */
const PADDING_BLOCKS = 512 / 16 + 160;
const FIRST_CHARACTER = 40;
const END_ID = 2;

const folder = temporaryFolder('skein-guides');
const engines = new TestEngines();
afterAll(() => engines.remove());

const characterOf = (token: number) => String.fromCharCode(32 + ((token - FIRST_CHARACTER) % 95));
const bytesOf = (vocabSize: number) =>
  Array.from({ length: vocabSize }, (_, token) =>
    token < FIRST_CHARACTER ? null : Uint8Array.of(characterOf(token).charCodeAt(0)),
  );

async function openTiny(path = tinyModelPath('gqa'), states: Partial<ExecutorOptions> = {}) {
  const engine = await engines.get(path, 'bf16');
  const executor = openExecutor(engine, {
    threads: 2,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: 16,
    numBlocks: POOL + PADDING_BLOCKS,
    maxNumTokens: 512,
    maxNumSequences: 160,
    maxLogitRows: 80,
    ...states,
  });
  return { executor, config: engine.manifest.config };
}

function guided(id: number, type: string, guide: string, more: Record<string, Tensor> = {}): Arrival {
  const inputs = {
    input_ids: { shape: [1, 3], data: Int32Array.of(5 + id, 6, 7) },
    request_output_len: i32(60),
    end_id: i32(END_ID),
    temperature: f32(1),
    random_seed: { shape: [1], data: BigUint64Array.of(BigInt(id)) },
    return_log_probs: bool(true),
    guided_decoding_guide_type: text(type),
    guided_decoding_guide: text(guide),
    ...more,
  };
  return { iteration: 3, request: { requestId: BigInt(id), inputs } };
}

function neighbours(vocabSize: number): Arrival[] {
  return randomScenario({
    vocabSize,
    requests: NEIGHBOURS,
    maxPrompt: 40,
    maxNew: 50,
    arrivalSpan: 10,
    seed: 3,
  });
}

function run(options: Partial<RunOptions> = {}): RunOptions {
  const usual = { numBlocks: POOL, maxNumTokens: 512, chunked: false, maxBeamWidth: SEQUENCES };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, ...options };
}
const PAUSED = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 20 } as const;
const RUNS: [string, RunOptions][] = [
  ['together', run()],
  ['paused, with block reuse', run({ ...PAUSED, reuse: true })],
  ['two micro-batches in turns', run({ overlap: true })],
  ['padded batches in lockstep', run({ modelType: 'V1' })],
];

/** With each step that a text of these is extended, the ways to read it are several times as many. */
const EXPONENTIAL =
  'root ::= s* \ns ::= "a" s "b" | "a" t "c" | "a" \n' +
  't ::= "a" s "d" | "a" t "e" | "a" u "f" | "a" \nu ::= "a" s "g" | "a" u "h" | "a" t "i" | "a"';
const ALL_BUT_A = 'bcdefghi';

/** Tokens of these characters, which are never drawn. */
function banned(characters: string, vocabSize: number): Record<string, Tensor> {
  const tokens = Array.from({ length: vocabSize - FIRST_CHARACTER }, (_, i) => FIRST_CHARACTER + i).filter(
    (token) => characters.includes(characterOf(token)),
  );
  tokens.push(END_ID);
  return {
    logit_bias_tokens: { shape: [1, tokens.length], data: Int32Array.from(tokens) },
    logit_bias: { shape: [1, tokens.length], data: new Float32Array(tokens.length).fill(-Infinity) },
  };
}

function expectSame(found: Map<bigint, Answer>, expected: Map<bigint, Answer>): void {
  for (const [key, answer] of expected) {
    expect(answer.error).toBe('');
    expect(found.get(key), `answer ${key}`).toStrictEqual(answer);
  }
}

describe.each(RUNS)('hostile guides beside others, %s', (_, options) => {
  it('fail alone where they can be read in too many ways, and where they are too large', async () => {
    const { executor, config } = await openTiny();
    const thread = () => new InlineGuideThread(bytesOf(config.vocabSize));
    const others = [
      ...neighbours(config.vocabSize),
      guided(201, 'regex', '[0-9]{20,40}'),
      guided(202, 'choice', '["yes indeed", "no"]', { num_return_sequences: i32(SEQUENCES) }),
    ];
    const hostile = [
      guided(101, 'ebnf_grammar', EXPONENTIAL, banned(ALL_BUT_A, config.vocabSize)),
      guided(102, 'regex', '(a{9999}){9999}'),
      guided(103, 'regex', `${'('.repeat(5000)}a${')'.repeat(5000)}`),
      guided(104, 'ebnf_grammar', EXPONENTIAL, {
        ...banned(ALL_BUT_A, config.vocabSize),
        num_return_sequences: i32(2),
      }),
    ];
    const alone = runAlone(executor, config, others, { guideThread: thread(), maxBeamWidth: SEQUENCES });
    const { answers } = runLoop(executor, config, [...others, ...hostile], {
      ...options,
      guideThread: thread(),
    });
    executor.close();
    expectSame(answers, alone);
    const errors = hostile.map(({ request }) => {
      const own = [...answers].filter(([key]) => BigInt.asUintN(32, key) === request.requestId);
      return own.map(([, { error }]) => error).find((error) => error !== '');
    });
    expect(errors[0]).toContain('can be read in more than 4096 ways at once');
    expect(errors[1]).toContain('too large');
    expect(errors[2]).toBeDefined();
    expect(errors[3]).toContain('can be read in more than 4096 ways at once');
  });
});

/** Draws numbers of a fixed row: what a disturbed run does is the same each time. */
function numbersOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

describe.each(RUNS)('what a thread does that is late, or dies, %s', (_, options) => {
  const GUIDES: [string, string][] = [
    ['regex', '[a-f]{1,3}(-[0-9]{2}){2,9}'],
    ['json_schema', '{"type":"array","items":{"enum":[1,22,"x"]},"minItems":2,"maxItems":5}'],
    ['regex', '([0-9a-z]{4}, ){3,12}'],
  ];
  const asked = () => [
    ...GUIDES.map(([type, guide], i) => guided(201 + i, type, guide)),
    guided(204, 'choice', '["yes indeed", "no"]', { num_return_sequences: i32(SEQUENCES) }),
    guided(205, 'regex', '[0-9]{20,40}', { num_return_sequences: i32(2) }),
  ];

  it.each([1, 2, 3])('changes no bit of any answer, seed %s', async (seed) => {
    const { executor, config } = await openTiny();
    const thread = () => new InlineGuideThread(bytesOf(config.vocabSize));
    const all = [...neighbours(config.vocabSize), ...asked()];
    const alone = runAlone(executor, config, all, { guideThread: thread(), maxBeamWidth: SEQUENCES });
    const disturbed = thread();
    const draw = numbersOf(seed);
    disturbed.delayOf = ({ type }) => (type !== 'forced' && draw(3) === 0 ? 1 + draw(6) : 0);
    let deaths = 0;
    disturbed.onRequest = ({ type }) => {
      if (type !== 'mask' || deaths === 4 || draw(9) > 0) return;
      deaths++;
      disturbed.stop();
    };
    const { answers, pauses } = runLoop(executor, config, all, { ...options, guideThread: disturbed });
    executor.close();
    expectSame(answers, alone);
    expect(deaths).toBe(4);
    expect(disturbed.starts).toBe(5);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
  });
});

const STATES: [string, number][] = [
  ['qwen3.5', 4],
  ['mamba2', 1],
  // No row of a step is logged.
  ['lfm2', 0],
];

describe.each(STATES)('masks that come late, %s, %s rows logged', (model, stateDraftRows) => {
  it.each(RUNS)('%s: no step counts twice in a state', async (_, options) => {
    const numStateSlots = 2 * (NEIGHBOURS + 8);
    const states = { numStateSlots, numDraftSlots: numStateSlots / 2, stateDraftRows };
    const { executor, config } = await openTiny(madeModelPath(folder, model), states);
    const thread = () => new InlineGuideThread(bytesOf(config.vocabSize));
    const all = [
      ...neighbours(config.vocabSize),
      guided(101, 'regex', '[a-f]{1,3}(-[0-9]{2}){2,9}(, and so on){3}'),
      guided(102, 'regex', '[0-9]{20,40}', { num_return_sequences: i32(2) }),
    ];
    const alone = runAlone(executor, config, all, { guideThread: thread(), maxBeamWidth: SEQUENCES });
    const late = thread();
    const draw = numbersOf(7);
    late.delayOf = ({ type }) => (type === 'masked' && draw(3) === 0 ? 2 + draw(6) : 0);
    const drafts = { policy: new RandomDrafts(5, config.vocabSize, () => []), rows: 40 };
    const { answers } = runLoop(executor, config, all, { ...options, guideThread: late, drafts });
    executor.close();
    expectSame(answers, alone);
  });
});

describe.each(RUNS)('several sequences with one guide, %s', (_, options) => {
  it('each follow it, as a request for that sequence alone does, bit for bit', async () => {
    const { executor, config } = await openTiny();
    const thread = () => new InlineGuideThread(bytesOf(config.vocabSize));
    const guides: [string, string, RegExp][] = [
      ['regex', '[a-f]{1,3}(-[0-9]{2}){2,9}', /^[a-f]{1,3}(-[0-9]{2}){2,9}$/],
      ['choice', '["red", "green", "blue and so on"]', /^(red|green|blue and so on)$/],
      ['json_schema', '{"type":"array","items":{"enum":[1,22,"x"]},"minItems":2,"maxItems":5}', /^\[.*\]$/],
    ];
    const asked = guides.map(([type, guide], i) =>
      guided(201 + i, type, guide, { num_return_sequences: i32(SEQUENCES) }),
    );
    const singles = guides.flatMap(([type, guide], i) =>
      Array.from({ length: SEQUENCES }, (__, index) => {
        const { request } = guided(201 + i, type, guide, { first_sequence_index: i32(index) });
        return { key: sequenceKey(request.requestId, index), request };
      }),
    );
    const crowd = [...neighbours(config.vocabSize), ...asked];
    const { answers, pauses } = runLoop(executor, config, crowd, { ...options, guideThread: thread() });
    for (const { key, request } of singles) {
      const single = runAlone(executor, config, [{ iteration: 0, request }], { guideThread: thread() });
      const { tokens, logProbs, error } = single.get(request.requestId)!;
      expect(error).toBe('');
      expect(answers.get(key), `answer ${key}`).toMatchObject({ tokens, logProbs, error });
      const [, , pattern] = guides[Number(request.requestId) - 201]!;
      const answered = tokens.filter((token) => token !== END_ID);
      expect(answered.map(characterOf).join('')).toMatch(pattern);
    }
    executor.close();
    const texts = singles.map(({ key }) => `${answers.get(key)!.tokens}`);
    expect(new Set(texts).size).toBeGreaterThan(guides.length + 2);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
  });
});
