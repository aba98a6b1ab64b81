import { ColumnTable } from '../../../../base/columns.js';
import { CHAIN, NUM_CHAIN_VALUES } from '../../../decoding/sampler-chain.js';
import {
  type DraftRow,
  OUTPUT_TABLE,
  type RowBias,
  type RowChain,
  SAMPLING_COLUMNS,
  type SamplingBatch,
  type SamplingOutput,
} from '../../../packed-call/sampling-batch.js';
import { entries } from './check-batch.js';
import {
  checkArrays,
  checkEntries,
  checkIntegers,
  checkLength,
  checkNumbers,
  checkObject,
} from './fields.js';

const PARAMETERS = new ColumnTable(SAMPLING_COLUMNS);
const FLOATS = PARAMETERS.namesOf('f32');
const INTEGERS = PARAMETERS.namesOf('i32');
const SEEDS = PARAMETERS.namesOf('u64');
const DRAWN_INTEGERS = OUTPUT_TABLE.namesOf('i32');
const DRAWN_FLOATS = OUTPUT_TABLE.namesOf('f32');

/** The greatest value that a parameter may have, so that computing with it in float32 still works. */
const GREATEST = 1e30;

/** Limits of sampling: rows that the output needs room for, and tokens to draw from. */
export interface SamplingLimits {
  /** Number of rows of logits that the last forward made. */
  logitRows: number;
  vocabSize: number;
}

/** Checks the types of all fields, before the batch that comes with them is checked. */
export function checkSamplingTypes(sampling: SamplingBatch, output: SamplingOutput): void {
  checkObject(sampling, 'sampling');
  if (sampling.tokenMasks !== undefined && sampling.tokenMasks !== null) {
    checkObject(sampling.tokenMasks, 'tokenMasks');
    checkArrays(sampling.tokenMasks, 'integers', ['maskOfRow', 'words']);
  }
  if (sampling.listsCandidates !== undefined) checkArrays(sampling, 'integers', ['listsCandidates']);
  checkIntegers(sampling, ['numRows']);
  checkArrays(sampling, 'floats', FLOATS);
  checkArrays(sampling, 'integers', INTEGERS);
  checkArrays(sampling, 'seeds', SEEDS);
  for (const field of ['biases', 'penalties']) {
    for (const bias of entries(sampling, field) as readonly RowBias[]) {
      checkIntegers(bias, ['row']);
      if (bias.tokens !== null) checkArrays(bias, 'integers', ['tokens']);
      checkArrays(bias, 'floats', ['values']);
    }
  }
  for (const chain of entries(sampling, 'chains')) {
    checkIntegers(chain, ['row']);
    checkArrays(chain, 'doubles', ['values']);
  }
  for (const draft of entries(sampling, 'draftRows')) {
    checkIntegers(draft, ['row', 'token']);
    checkArrays(draft, 'floats', ['logits']);
  }
  checkObject(output, 'output');
  checkArrays(output, 'integers', DRAWN_INTEGERS);
  checkArrays(output, 'floats', DRAWN_FLOATS);
}

/**
 * Makes all other checks that the native executor makes of sampling parameters; throws one sentence, and nothing is
 * sampled.
 */
export function checkSampling(
  sampling: SamplingBatch,
  output: SamplingOutput,
  { logitRows, vocabSize }: SamplingLimits,
): void {
  const rows = sampling.numRows;
  if (rows !== logitRows)
    throw new Error(`numRows is ${rows}, but the last forward made ${logitRows} rows of logits.`);
  checkNumbers(sampling.temperature, rows, 0, GREATEST, 'temperature');
  checkNumbers(sampling.topP, rows, 0, 1, 'topP');
  checkNumbers(sampling.minP, rows, 0, 1, 'minP');
  checkNumbers(sampling.repetitionPenalty, rows, 1e-6, GREATEST, 'repetitionPenalty');
  checkNumbers(sampling.presencePenalty, rows, -GREATEST, GREATEST, 'presencePenalty');
  checkNumbers(sampling.frequencyPenalty, rows, -GREATEST, GREATEST, 'frequencyPenalty');
  checkEntries(sampling.topK, rows, 0, 2 ** 31, 'topK');
  checkEntries(sampling.noRepeatNgramSize, rows, 0, 2 ** 31, 'noRepeatNgramSize');
  checkBiases('biases', sampling.biases ?? [], rows, vocabSize);
  checkBiases('penalties', sampling.penalties ?? [], rows, vocabSize);
  checkChains(sampling.chains ?? [], rows);
  checkDrafts(sampling.draftRows ?? [], rows, vocabSize);
  checkEntries(sampling.numTopLogProbs, rows, -1, vocabSize + 1, 'numTopLogProbs');
  checkLength(sampling.seed, rows, 'seed');
  checkLength(sampling.sequenceIndex, rows, 'sequenceIndex');
  checkLength(sampling.position, rows, 'position');
  checkTokenLists(sampling, rows, vocabSize);
  checkCandidates(sampling, rows);
  if (sampling.tokenMasks) {
    const { maskOfRow, words } = sampling.tokenMasks;
    checkEntries(maskOfRow, rows, -1, Math.floor(words.length / Math.ceil(vocabSize / 32)), 'maskOfRow');
  }
  checkHistoryLengths(sampling, rows);
  checkOutput(sampling, output, rows);
}

/**
 * Checks biases except for their values, which are checked where they are added: one that makes a logit NaN fails its
 * row.
 */
function checkBiases(field: string, biases: readonly RowBias[], rows: number, vocabSize: number): void {
  let least = 0;
  for (const { row, tokens, values } of biases) {
    checkListedRow(field, row, least, rows);
    if (tokens !== null) checkEntries(tokens, tokens.length, 0, vocabSize, `tokens of ${field}`);
    checkLength(values, tokens?.length ?? vocabSize, `values of ${field}`);
    least = row + 1;
  }
}

const { typicalP, xtcProbability, xtcThreshold, temperatureLast } = CHAIN;
const { topNSigma, dynamicRange, dynamicExponent } = CHAIN;
const { mirostat, mirostatTau, mirostatEta, mirostatMu } = CHAIN;

/** Limits of the places of a chain's values. */
const CHAIN_LIMITS: readonly (readonly [places: readonly number[], least: number, most: number])[] = [
  [[typicalP, xtcProbability, xtcThreshold, temperatureLast], 0, 1],
  [[topNSigma, dynamicRange, dynamicExponent], 0, GREATEST],
  [[mirostat], 0, 2],
  [[mirostatTau, mirostatEta, mirostatMu], -GREATEST, GREATEST],
];

function checkChains(chains: readonly RowChain[], rows: number): void {
  let least = 0;
  for (const { row, values } of chains) {
    checkListedRow('chains', row, least, rows);
    checkLength(values, NUM_CHAIN_VALUES, 'values of chains');
    for (const [places, low, high] of CHAIN_LIMITS) {
      for (const place of places) {
        const value = values[place]!;
        if (value >= low && value <= high) continue;
        throw new Error(`values of chains[${place}] is ${value}, but it must be between ${low} and ${high}.`);
      }
    }
    least = row + 1;
  }
}

/** Checks draft rows except for their logits, which were checked when the request came. */
function checkDrafts(drafts: readonly DraftRow[], rows: number, vocabSize: number): void {
  let least = 0;
  for (const { row, token, logits } of drafts) {
    checkListedRow('draftRows', row, least, rows);
    if (token < 0 || token >= vocabSize)
      throw new Error(`draftRows has token ${token}, but the vocabulary has ${vocabSize}.`);
    checkLength(logits, vocabSize, 'logits of draftRows');
    least = row + 1;
  }
}

function checkListedRow(field: string, row: number, least: number, rows: number): void {
  if (row >= least && row < rows) return;
  throw new Error(`${field} has row ${row}, but one of the rows ${least} to ${rows - 1} is expected there.`);
}

function checkTokenLists(sampling: SamplingBatch, rows: number, vocabSize: number): void {
  const { bannedStart, banned, historyStart, history } = sampling;
  checkLength(sampling.historyPromptLength, rows, 'historyPromptLength');
  checkTokenList('banned', bannedStart, banned, { rows, least: 0, vocabSize });
  checkTokenList('history', historyStart, history, { rows, least: -1, vocabSize });
}

/** Checks lists of tokens: row r has the tokens [start[r], start[r + 1]) of a flat list. */
function checkTokenList(
  field: string,
  start: Int32Array,
  tokens: Int32Array,
  { rows, least, vocabSize }: { rows: number; least: number; vocabSize: number },
): void {
  checkEntries(start, rows + 1, 0, tokens.length + 1, `${field}Start`);
  for (let row = 0; row < rows; row++) {
    if (start[row + 1]! < start[row]!)
      throw new Error(`${field}Start[${row + 1}] is below the entry before it.`);
    for (let i = start[row]!; i < start[row + 1]!; i++) {
      if (tokens[i]! >= least && tokens[i]! < vocabSize) continue;
      throw new Error(`${field}[${i}] is token ${tokens[i]}, but the vocabulary has ${vocabSize}.`);
    }
  }
}

function checkCandidates({ listsCandidates, numTopLogProbs }: SamplingBatch, rows: number): void {
  if (listsCandidates === undefined || listsCandidates.length === 0) return;
  checkEntries(listsCandidates, rows, 0, 2, 'listsCandidates');
  for (let row = 0; row < rows; row++) {
    if (listsCandidates[row] === 0 || numTopLogProbs[row]! > 0) continue;
    throw new Error(
      `numTopLogProbs[${row}] is ${numTopLogProbs[row]}, but a row that lists candidates needs at least 1.`,
    );
  }
}

function checkHistoryLengths({ historyStart, historyPromptLength }: SamplingBatch, rows: number): void {
  for (let row = 0; row < rows; row++) {
    const length = historyStart[row + 1]! - historyStart[row]!;
    const prompt = historyPromptLength[row]!;
    if (prompt >= 0 && prompt <= length) continue;
    throw new Error(`historyPromptLength[${row}] is ${prompt}, but the row's history has ${length} tokens.`);
  }
}

function checkOutput(sampling: SamplingBatch, output: SamplingOutput, rows: number): void {
  checkLength(output.tokens, rows, 'tokens');
  checkLength(output.logProbs, rows, 'logProbs');
  checkLength(output.status, rows, 'status');
  let numTop = 0;
  for (let row = 0; row < rows; row++) numTop += Math.max(0, sampling.numTopLogProbs[row]!);
  checkLength(output.topStart, rows + 1, 'topStart');
  checkLength(output.topTokens, numTop, 'topTokens');
  checkLength(output.topLogProbs, numTop, 'topLogProbs');
}
