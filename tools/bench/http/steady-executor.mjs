// An executor module without a model, for tools/bench/http: every step waits until its tokens are due at a steady rate and
// then draws them out of nothing, so that the worker costs next to no processor time. Options stand in the query of this
// module's URL: rate (tokens a second over all requests), vocabSize, maxSeqLen, and threadFile, to which the worker
// writes the id of its thread.
import { readlinkSync, writeFileSync } from 'node:fs';
import { RopeTable } from '../../../dist/engine/batch/rope-table.js';
import { kvBlocks, resolveLimits } from '../../../dist/engine/options/engine-limits.js';

const asked = new URL(import.meta.url).searchParams;
const number = (name) => Number(asked.get(name));
/** The first ids are control tokens; those after them are mostly words. */
const FIRST_WORD = 300;
const WORDS = 20_000;
/** A late step is made up for, so that the rate is kept; a longer pause is not. */
const CATCH_UP_MS = 100;

export function loadExecutor({ params, modelType, maxBeamWidth = 1 }) {
  writeFileSync(asked.get('threadFile'), readlinkSync('/proc/thread-self').split('/').at(-1));
  const maxSeqLen = number('maxSeqLen');
  const limits = resolveLimits(params, { maxInputLen: maxSeqLen, maxSeqLen }, modelType, maxBeamWidth);
  const available = { bytes: 2 ** 30, from: 'the bench' };
  const numBlocks = kvBlocks(params, { limits, bytesPerBlock: 4 * limits.tokensPerBlock, available });
  const executor = new SteadyExecutor(number('rate'), numBlocks, limits, number('vocabSize'));
  const rope = new RopeTable(
    { inverseFrequencies: Float32Array.of(1), scale: 1 },
    null,
    limits.maxNumSequences,
  );
  return { executor, limits, rope, endTokenIds: [], padTokenId: null };
}

class SteadyExecutor {
  name = 'fake';
  instructionSet = 'none';
  hiddenSize = 4;
  #msPerToken;
  #dueMs = 0;
  #sleeper = new Int32Array(new SharedArrayBuffer(4));

  constructor(rate, numBlocks, { maxSeqLen, tokensPerBlock, microBatch, maxDraftRows }, vocabSize) {
    this.#msPerToken = 1000 / rate;
    this.vocabSize = vocabSize;
    this.options = {
      threads: 1,
      maxNumTokens: microBatch.maxNumTokens,
      maxNumSequences: microBatch.maxSequences,
      maxLogitRows: microBatch.maxSequences + maxDraftRows,
      maxSeqLen,
      numBlocks,
      tokensPerBlock,
      kvDtype: 'f32',
    };
  }

  step(_batch, sampling, output) {
    this.#dueMs =
      Math.max(this.#dueMs, performance.now() - CATCH_UP_MS) + sampling.numRows * this.#msPerToken;
    const waitMs = this.#dueMs - performance.now();
    if (waitMs > 0) Atomics.wait(this.#sleeper, 0, 0, waitMs);
    for (let row = 0; row < sampling.numRows; row++) {
      const hash = Math.imul(sampling.position[row] + 1, 0x9e3779b1) ^ Math.imul(row + 1, 0x85ebca6b);
      output.tokens[row] = FIRST_WORD + ((hash >>> 8) % WORDS);
      output.logProbs[row] = -1;
      output.status[row] = 0;
      output.topStart[row + 1] = output.topStart[row] + Math.max(0, sampling.numTopLogProbs[row]);
      output.topTokens.fill(FIRST_WORD, output.topStart[row], output.topStart[row + 1]);
      output.topLogProbs.fill(-1, output.topStart[row], output.topStart[row + 1]);
    }
  }

  copyBlocks() {}
  areFinite() {
    return true;
  }
  memory() {
    return { weightBytes: 0, kvCacheBytes: 0, secondaryKvCacheBytes: 0, workspaceBytes: 0 };
  }
  close() {}
}
