import type { AttentionWindow } from '../../../../kvcache/attention-window.js';
import { takesWholeSequences } from '../../../../network/attention-mask.js';
import { type NetworkPlan, PLACES_OF_TOKEN } from '../../../../network/plan.js';
import {
  PACKED_TABLE,
  type PackedBatch,
  type ReturnedRows,
  ROPE_TABLE,
} from '../../../packed-call/packed-batch.js';
import type { ExecutorOptions } from '../../executor.js';
import { slotOf } from '../cache-places.js';
import { checkPictures } from './check-pictures.js';
import { checkStates } from './check-states.js';
import { checkArrays, checkCount, checkEntries, checkIntegers, checkLength, checkObject } from './fields.js';

/** Limits that a batch is checked against. */
export interface BatchLimits {
  plan: NetworkPlan;
  options: ExecutorOptions;
  window: AttentionWindow | null;
  /** Number of values in an embedding. */
  promptRowWidth: number;
}

const INTEGERS = PACKED_TABLE.namesOf('i32');
const FLOATS = ROPE_TABLE.namesOf('f32');
const COUNTS = ['numTokens', 'numSequences', 'numLogitRows', 'numNewBlocks', 'maxBlocks'];

/** Makes all checks that the native executor makes of a batch, before anything is touched; throws one sentence. */
export function checkBatch(batch: PackedBatch, limits: BatchLimits): void {
  const { plan, options } = limits;
  checkTypes(batch);
  checkCounts(batch, options);
  checkTokens(batch, limits);
  const { numTokens } = batch;
  checkEntries(batch.positions, numTokens, 0, 2 ** 30, 'positions');
  if (batch.gridPositions) checkEntries(batch.gridPositions, 2 * numTokens, 0, 2 ** 30, 'gridPositions');
  checkEntries(batch.slots, numTokens, 0, options.numBlocks * options.tokensPerBlock, 'slots');
  checkEntries(batch.logitRows, batch.numLogitRows, 0, numTokens, 'logitRows');
  checkEntries(batch.newBlocks, batch.numNewBlocks, 0, options.numBlocks, 'newBlocks');
  checkRope(batch, plan);
  checkSequences(batch, limits);
  checkPictures(batch, limits);
  if (plan.states !== undefined) checkStates(batch, options);
  checkLookups(batch, plan);
  checkRows(batch, plan);
  checkWholeSequences(batch, plan);
  checkSegments(batch, plan);
  checkReturned(batch, plan);
}

function checkTypes(batch: PackedBatch): void {
  checkObject(batch, 'batch');
  if (batch.tokenTypes !== undefined) checkArrays(batch, 'integers', ['tokenTypes']);
  for (const field of ['places', 'segments'] as const)
    if (batch[field] !== undefined) checkArrays(batch, 'integers', [field]);
  for (const field of ['placeShares', 'rowInputs'] as const)
    if (batch[field] !== undefined) checkArrays(batch, 'floats', [field]);
  checkIntegers(batch, COUNTS);
  checkArrays(batch, 'integers', INTEGERS);
  checkArrays(batch, 'floats', FLOATS);
  for (const rows of entries(batch, 'returnedRows')) checkReturnedTypes(rows as ReturnedRows);
  for (const rows of entries(batch, 'promptTables')) {
    checkIntegers(rows, ['first', 'count']);
    checkArrays(rows, 'floats', ['table']);
  }
}

/** Objects of a list that may be absent. */
export function entries(target: object, field: string): readonly object[] {
  const list = (target as Record<string, unknown>)[field];
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new Error(`${field} must be an array.`);
  for (const entry of list) checkObject(entry, `an entry of ${field}`);
  return list;
}

function checkReturnedTypes(rows: ReturnedRows): void {
  if (rows.of !== 'tokens' && rows.of !== 'logitRows')
    throw new Error(`of is "${rows.of}"; tokens or logitRows is expected.`);
  checkIntegers(rows, ['first', 'count']);
  if (rows.logits !== null) checkArrays(rows, 'floats', ['logits']);
  if (rows.logProbs === null) return;
  checkObject(rows.logProbs, 'logProbs');
  checkIntegers(rows.logProbs, ['numTop']);
  checkArrays(rows.logProbs, 'integers', ['tokens', 'topTokens']);
  checkArrays(rows.logProbs, 'floats', ['logProbs', 'topLogProbs']);
}

function checkCounts(batch: PackedBatch, options: ExecutorOptions): void {
  checkCount(batch.numTokens, 1, options.maxNumTokens, 'numTokens');
  checkCount(batch.numSequences, 1, options.maxNumSequences, 'numSequences');
  checkCount(batch.numLogitRows, 0, options.maxLogitRows, 'numLogitRows');
  checkCount(batch.numNewBlocks, 0, options.numBlocks, 'numNewBlocks');
  checkCount(batch.maxBlocks, 1, 2 ** 30, 'maxBlocks');
  checkLength(batch.queryStart, batch.numSequences + 1, 'queryStart');
  checkLength(batch.contextLength, batch.numSequences, 'contextLength');
  checkLength(batch.blockTables, batch.numSequences * batch.maxBlocks, 'blockTables');
}

/** Checks that ids are inside the vocabulary, or after it among those that a prompt table has rows for. */
function checkTokens(batch: PackedBatch, { plan, promptRowWidth }: BatchLimits): void {
  const { tokenIds, numTokens } = batch;
  checkLength(tokenIds, numTokens, 'tokenIds');
  let checked = 0;
  const checkUpTo = (end: number, ids: number) => {
    for (; checked < end; checked++) {
      const id = tokenIds[checked]!;
      if (id >= 0 && id < ids) continue;
      throw new Error(`tokenIds[${checked}] is ${id}, but it must be in [0, ${ids}).`);
    }
  };
  for (const { first, count, table } of batch.promptTables ?? []) {
    if (count < 1 || first < checked || first + count > numTokens) {
      throw new Error(
        `promptTables has rows ${first} to ${first + count}, but some of ${checked} to ${numTokens} are expected there.`,
      );
    }
    if (table.length % promptRowWidth !== 0) {
      throw new Error(
        `table of promptTables has ${table.length} values, but rows of ${promptRowWidth} are expected.`,
      );
    }
    checkUpTo(first, plan.vocabSize);
    checkUpTo(first + count, plan.vocabSize + table.length / promptRowWidth);
  }
  checkUpTo(numTokens, plan.vocabSize);
}

function checkRope(batch: PackedBatch, plan: NetworkPlan): void {
  if (plan.attention.rotaryDim === 0) return;
  const half = plan.attention.rotaryDim / 2;
  const rows = Math.min(Math.floor(batch.ropeFrequencies.length / half), batch.ropeScales.length);
  if (rows < 1) {
    throw new Error(`ropeFrequencies and ropeScales hold no whole row of ${half} frequencies and a scale.`);
  }
  checkEntries(batch.ropeRows, batch.numSequences, 0, rows, 'ropeRows');
}

function checkSequences(batch: PackedBatch, limits: BatchLimits): void {
  const { queryStart, numSequences, numTokens } = batch;
  if (queryStart[0] !== 0) throw new Error(`queryStart[0] is ${queryStart[0]}, but it must be 0.`);
  for (let sequence = 0; sequence < numSequences; sequence++) checkSequence(batch, limits, sequence);
  if (queryStart[numSequences] !== numTokens) {
    throw new Error(
      `queryStart[${numSequences}] is ${queryStart[numSequences]}, but the batch has ${numTokens} tokens.`,
    );
  }
}

function checkSequence(batch: PackedBatch, { options, window }: BatchLimits, sequence: number): void {
  const { tokensPerBlock, maxSeqLen, numBlocks } = options;
  const { queryStart, blockTables, maxBlocks } = batch;
  const begin = queryStart[sequence]!;
  const end = queryStart[sequence + 1]!;
  const length = batch.contextLength[sequence]!;
  if (end <= begin) throw new Error(`queryStart[${sequence + 1}] is ${end}, but it must be above ${begin}.`);
  if (end > batch.numTokens)
    throw new Error(`queryStart[${sequence + 1}] is ${end}, but the batch has ${batch.numTokens} tokens.`);
  const cycles = window !== null && maxBlocks >= window.maxBlocks;
  const room = cycles ? maxSeqLen : Math.min(maxSeqLen, maxBlocks * tokensPerBlock);
  if (length < end - begin || length > room) {
    throw new Error(
      `contextLength[${sequence}] is ${length}, but it must be between ${end - begin} (this step's tokens) and ` +
        `${room} (maxSeqLen and the block table).`,
    );
  }
  const used = Math.min(Math.ceil(length / tokensPerBlock), window?.maxBlocks ?? Infinity);
  for (let i = sequence * maxBlocks; i < sequence * maxBlocks + used; i++) {
    const block = blockTables[i]!;
    if (block < 0 || block >= numBlocks)
      throw new Error(`blockTables[${i}] is block ${block}, but the pool has ${numBlocks} blocks.`);
  }
  // K and V of a token must go where its sequence's attention will look for them.
  for (let t = begin; t < end; t++) {
    const place = length - (end - t);
    const slot = slotOf(batch, sequence, place, { tokensPerBlock, window });
    if (batch.slots[t] === slot) continue;
    throw new Error(
      `slots[${t}] is ${batch.slots[t]}, but the block table of sequence ${sequence} puts its cache position ` +
        `${place} at ${slot}.`,
    );
  }
}

/** Checks that each table that is looked up by something other than tokens has a row for every entry. */
function checkLookups(batch: PackedBatch, plan: NetworkPlan): void {
  for (const op of plan.ops) {
    if (op.op !== 'addEmbedding' || op.by === 'tokenIds') continue;
    const { rows } = plan.weights.find(({ name }) => name === op.weight)!;
    if (op.by === 'places') {
      const { places = new Int32Array(0), placeShares = new Float32Array(0) } = batch;
      checkEntries(places, batch.numTokens * PLACES_OF_TOKEN, 0, rows, 'places');
      checkLength(placeShares, batch.numTokens * PLACES_OF_TOKEN, 'placeShares');
      continue;
    }
    const ids = op.by === 'positions' ? batch.positions : (batch.tokenTypes ?? new Int32Array(0));
    checkEntries(ids, batch.numTokens, 0, rows, op.by);
  }
}

/** Checks that rows of the caller are there, and that all rows that make one are. */
function checkRows(batch: PackedBatch, { ops, values }: NetworkPlan): void {
  for (const op of ops) {
    if (op.op === 'rowInput') {
      const floats = batch.numTokens * values[op.output]!.width;
      checkLength(batch.rowInputs ?? new Float32Array(0), floats, 'rowInputs');
    }
    if (op.op === 'selectRows' && op.rows !== undefined)
      checkEntries(batch.logitRows, batch.numLogitRows, 0, batch.numTokens - op.rows + 1, 'logitRows');
  }
}

/** Checks that sequences come as a whole where they must, and that means are taken one per sequence. */
function checkWholeSequences(batch: PackedBatch, plan: NetworkPlan): void {
  const { numLogitRows, numSequences, queryStart, contextLength } = batch;
  if (plan.ops.some(({ op }) => op === 'meanPool') && numLogitRows !== numSequences) {
    throw new Error(
      `numLogitRows is ${numLogitRows}, but of each of the ${numSequences} sequences one mean comes out.`,
    );
  }
  const takesWhole = takesWholeSequences(plan);
  for (let sequence = 0; takesWhole && sequence < numSequences; sequence++) {
    const rows = queryStart[sequence + 1]! - queryStart[sequence]!;
    if (contextLength[sequence] === rows) continue;
    throw new Error(
      `contextLength[${sequence}] is ${contextLength[sequence]}, but its ${rows} tokens must be the whole sequence, ` +
        'since they attend both ways or their layers share a cache.',
    );
  }
}

/** Checks that the segments of each sequence lie one after the other, from its first token to its last. Sequences are whole. */
function checkSegments(
  { segments, queryStart, numTokens, numSequences }: PackedBatch,
  plan: NetworkPlan,
): void {
  if (!plan.ops.some((op) => op.op === 'attention' && op.mask?.segments)) return;
  const given = segments ?? new Int32Array(0);
  checkLength(given, 2 * numTokens, 'segments');
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const first = queryStart[sequence]!;
    const length = queryStart[sequence + 1]! - first;
    let [begin, end] = [0, 0];
    for (let row = 0; row < length; row++) {
      const found = given[2 * (first + row)]!;
      const foundEnd = given[2 * (first + row) + 1]!;
      if (row === end) [begin, end] = [row, foundEnd];
      if (found === begin && foundEnd === end && end > row && end <= length) continue;
      throw new Error(
        `segments of row ${first + row} are ${found} to ${foundEnd}, but they must lie one after the other in a sequence of ${length}.`,
      );
    }
  }
}

function checkReturned(batch: PackedBatch, plan: NetworkPlan): void {
  const { returnedRows = [] } = batch;
  if (returnedRows.length > 0 && plan.outputWidth !== plan.vocabSize)
    throw new Error('returnedRows asks for logits, but this network has none over a vocabulary.');
  for (const rows of returnedRows) checkReturnedRows(rows, batch, plan.vocabSize);
}

function checkReturnedRows(rows: ReturnedRows, batch: PackedBatch, vocabSize: number): void {
  const { first, count, logits, logProbs } = rows;
  const isSampled = rows.of === 'logitRows';
  const available = isSampled ? batch.numLogitRows : batch.numTokens;
  if (count < 1 || first < 0 || first + count > available) {
    throw new Error(
      `returnedRows asks for rows ${first} to ${first + count} of ${available}` +
        `${isSampled ? ' rows of logits' : ' tokens'}.`,
    );
  }
  if (logits !== null) checkLength(logits, count * vocabSize, 'logits of returnedRows');
  if (logProbs === null) return;
  const { numTop } = logProbs;
  checkCount(numTop, 0, vocabSize, 'numTop of returnedRows');
  checkEntries(logProbs.tokens, count, -1, vocabSize, 'tokens of returnedRows');
  checkLength(logProbs.logProbs, count, 'logProbs of returnedRows');
  checkLength(logProbs.topTokens, count * numTop, 'topTokens of returnedRows');
  checkLength(logProbs.topLogProbs, count * numTop, 'topLogProbs of returnedRows');
}
