import { describe, expect, it } from 'vitest';
import { RopeTable } from '../../../engine/batch/rope-table.js';
import { FakeExecutor, type FakeExecutorOptions } from '../../../engine/executors/fake/fake-executor.js';
import type { LlmRequest } from '../../../engine/request/llm-request.js';
import { DraftModel } from '../../../engine/speculation/draft-model.js';
import { Speculation } from '../../../engine/speculation/speculation.js';
import { KvCacheManager } from '../../../kvcache/kv-cache-manager.js';
import {
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
} from '../../../tools/support/loop-harness.js';

const TOKENS_PER_BLOCK = 8;

/** Its rounds cost nothing, so that drafts are as long as they may be. */
class FreeDraftModel extends DraftModel {
  override roundCost(): number {
    return 0;
  }

  /** Milliseconds for each token. */
  msPerRead = 0;

  override readingCost(request: LlmRequest): number {
    return this.msPerRead * (request.numTokens - 1);
  }
}

interface Setup {
  numBlocks?: number;
  maxNumTokens?: number;
  maxSeqLen?: number;
  draft?: Partial<FakeExecutorOptions>;
  loop?: HarnessOptions;
  Executor?: typeof FakeExecutor;
}

/** Draws another token than the model. */
class WrongExecutor extends FakeExecutor {
  override step(...call: Parameters<FakeExecutor['step']>): void {
    super.step(...call);
    const [, { numRows }, { tokens }] = call;
    for (let row = 0; row < numRows; row++) tokens[row] = (tokens[row]! + 1) % this.vocabSize;
  }
}

/** The fake executor draws by what is in the slots that a sequence's table names: as its own draft model it is always right. */
class DraftHarness {
  readonly executor: FakeExecutor;
  readonly kvCache: KvCacheManager;
  readonly draftModel: FreeDraftModel;
  readonly failures: Error[] = [];
  readonly harness: LoopHarness;

  constructor({
    numBlocks = 64,
    maxNumTokens = 64,
    maxSeqLen = 64,
    draft,
    loop,
    Executor = FakeExecutor,
  }: Setup = {}) {
    this.executor = new Executor({
      threads: 1,
      maxNumTokens,
      maxNumSequences: 16,
      maxLogitRows: 16,
      maxSeqLen,
      numBlocks,
      tokensPerBlock: TOKENS_PER_BLOCK,
      kvDtype: 'f32',
      vocabSize: 100,
      // A rejected draft is written over.
      allowsOverwriting: true,
      ...draft,
    });
    this.kvCache = new KvCacheManager({ numBlocks, tokensPerBlock: TOKENS_PER_BLOCK, maxSeqLen });
    this.draftModel = new FreeDraftModel({
      executor: this.executor,
      kvCache: this.kvCache,
      rope: new RopeTable({ inverseFrequencies: Float32Array.of(1), scale: 1 }, null, 16),
      costShare: 0,
      clock: () => 0,
      onFailure: (error) => this.failures.push(error),
    });
    const { draftModel } = this;
    const drafts = new Speculation({ usesNgrams: false, draftModel, maxDraftLen: 4, maxRows: 64 });
    this.harness = new LoopHarness({ maxDraftRows: 16, drafts, ...loop });
  }

  /** Runs requests to their ends; then both pools are whole again, and the draft model has failed as often as is said. */
  run(requests: ReturnType<typeof makeRequest>[], numFailures = 0): LoopHarness {
    this.harness.run(...requests);
    expect(this.failures).toHaveLength(numFailures);
    expect(this.harness.errors).toEqual([]);
    expect(this.kvCache.freeBlocks).toBe(this.kvCache.numBlocks);
    return this.harness;
  }
}

const sum = ({ stats }: LoopHarness, count: 'draftedTokens' | 'acceptedDraftTokens' | 'totalPauses') =>
  stats.reduce((total, one) => total + one[count], 0);

const promptOf = (length: number, first = 1) => Array.from({ length }, (_, i) => (first + 3 * i) % 100);
const crowd = Array.from({ length: 6 }, (_, i) =>
  makeRequest(BigInt(i + 1), promptOf(3 + 4 * i, i), 12 + 3 * i),
);

function expectUnchanged(harness: LoopHarness, requests: readonly ReturnType<typeof makeRequest>[]): void {
  for (const request of requests) {
    const { numResponses: _, ...alone } = runAlone(request);
    expect(alone.error).toBe('');
    expect(harness.resultOf(request.requestId)).toMatchObject(alone);
  }
}

describe('drafts of a draft model', () => {
  it('are all right where it is the model itself', () => {
    const harness = new DraftHarness().run(crowd);
    expectUnchanged(harness, crowd);
    expect(sum(harness, 'draftedTokens')).toBeGreaterThan(40);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
  });

  it('are all right where each step of it reads only a part of the prompts', () => {
    const harness = new DraftHarness({ maxNumTokens: 5 }).run(crowd);
    expectUnchanged(harness, crowd);
    expect(sum(harness, 'draftedTokens')).toBeGreaterThan(10);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
  });

  it('are never right where it draws otherwise, and change nothing', () => {
    const drafts = new DraftHarness({ Executor: WrongExecutor });
    const harness = drafts.run(crowd);
    expectUnchanged(harness, crowd);
    expect(drafts.executor.numSteps).toBeGreaterThan(10);
    expect(sum(harness, 'draftedTokens')).toBeGreaterThan(10);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(0);
  });

  it('are left out for sequences that its pool has no room for', () => {
    const harness = new DraftHarness({ numBlocks: 8 }).run(crowd);
    expectUnchanged(harness, crowd);
    const alone = sum(new DraftHarness().run(crowd), 'draftedTokens');
    expect(sum(harness, 'draftedTokens')).toBeLessThan(alone);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
    expect(sum(harness, 'draftedTokens')).toBeGreaterThan(10);
  });

  it('are left out behind the longest sequence that it takes', () => {
    const request = makeRequest(1n, promptOf(10), 40);
    const harness = new DraftHarness({ maxSeqLen: 24 }).run([request]);
    expectUnchanged(harness, [request]);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
    expect(sum(harness, 'draftedTokens')).toBeGreaterThan(5);
    expect(sum(harness, 'draftedTokens')).toBeLessThan(15);
  });

  it('begin anew after pauses', () => {
    const loop: HarnessOptions = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 9, maxNumSequences: 6 };
    const harness = new DraftHarness({ loop }).run(crowd);
    expectUnchanged(harness, crowd);
    expect(harness.stats.at(-1)!.totalPauses).toBeGreaterThan(0);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
  });

  it('end with their request when it is cancelled', () => {
    const drafts = new DraftHarness();
    const { harness, kvCache } = drafts;
    harness.waiting.push(...crowd);
    for (let i = 0; i < 3; i++) harness.loop.iterate();
    expect(kvCache.freeBlocks).toBeLessThan(kvCache.numBlocks);
    for (const { requestId } of crowd) harness.stops.add(requestId);
    drafts.run([]);
  });

  it.each([{ max_draft_len: i32(0) }, { num_return_sequences: i32(2) }])('are not drawn for %o', (inputs) => {
    const { harness, executor } = new DraftHarness();
    harness.run(makeRequest(1n, promptOf(5), 10, inputs));
    expect(executor.numSteps).toBe(0);
  });

  it('are not drawn for sequences whose reading takes longer than drafts can save', () => {
    const drafts = new DraftHarness();
    // Steps of the fake executor are not timed: one of a single row is taken to cost 1, and drafts to save less than that
    // for each token of the answer.
    drafts.draftModel.msPerRead = 1;
    const [short, long] = [makeRequest(1n, promptOf(1), 30), makeRequest(2n, promptOf(40), 20)];
    expectUnchanged(drafts.run([long]), [long]);
    expect(drafts.executor.numSteps).toBe(0);
    expectUnchanged(drafts.run([short]), [short]);
    expect(drafts.executor.numSteps).toBeGreaterThan(0);
  });

  it('are fewer for a request that comes after others whose drafts were wrong', () => {
    const request = makeRequest(99n, promptOf(7), 12);
    const first = new DraftHarness({ Executor: WrongExecutor }).run([request]);
    const drafts = new DraftHarness({ Executor: WrongExecutor });
    const before = sum(drafts.run(crowd), 'draftedTokens');
    const after = sum(drafts.run([request]), 'draftedTokens') - before;
    expect(after).toBeLessThan(sum(first, 'draftedTokens'));
  });

  it('end with the first failure of the draft model, which no request notices', () => {
    const { tokens } = runAlone(crowd[0]!);
    const drafts = new DraftHarness({ draft: { throwToken: tokens.at(-3)! } });
    const harness = drafts.run(crowd, 1);
    expectUnchanged(harness, crowd);
    expect(drafts.failures[0]!.message).toMatch(
      /^The draft model failed and drafts no more; requests go on without it: ./,
    );
  });

  it('are shorter where its logits are not finite', () => {
    const { tokens } = runAlone(crowd[0]!);
    const harness = new DraftHarness({ draft: { poisonToken: tokens[4]! } }).run(crowd);
    expectUnchanged(harness, crowd);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
  });
});
