import type {
  LogitBias,
  SamplingBatch,
  SamplingOutput,
  TokenMasks,
} from '../../engine/packed-call/sampling-batch.js';

/** Sampling parameters of a row; those not given are off. */
export interface SamplingRow {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  noRepeatNgramSize?: number;
  bias?: LogitBias;
  /** Added after all other penalties. */
  penalties?: LogitBias;
  /** Values of its chain, as chainValuesOf makes them; mirostat's state is written to it. */
  chain?: Float64Array;
  /** A draft token, and what it was drawn from. */
  draft?: { token: number; logits: Float32Array };
  seed?: bigint;
  sequenceIndex?: number;
  position?: number;
  banned?: readonly number[];
  /** Tokens that its mask allows; not given: no mask. */
  allowed?: readonly number[];
  numTopLogProbs?: number;
  /** It lists its numTopLogProbs candidates. */
  listsCandidates?: boolean;
  prompt?: readonly number[];
  generated?: readonly number[];
}

export function makeSamplingBatch(rows: readonly SamplingRow[], vocabSize = 0): SamplingBatch {
  const history: number[] = [];
  const historyStart = [0];
  const bannedStart = [0];
  const allBanned = rows.flatMap(({ banned = [] }) => banned);
  for (const { prompt = [], generated = [], banned = [] } of rows) {
    history.push(...prompt, ...generated);
    historyStart.push(history.length);
    bannedStart.push(bannedStart.at(-1)! + banned.length);
  }
  const floats = (pick: (row: SamplingRow) => number | undefined, off: number) =>
    Float32Array.from(rows, (row) => pick(row) ?? off);
  const integers = (pick: (row: SamplingRow) => number | undefined, off: number) =>
    Int32Array.from(rows, (row) => pick(row) ?? off);
  return {
    numRows: rows.length,
    temperature: floats((row) => row.temperature, 0),
    topK: integers((row) => row.topK, 0),
    topP: floats((row) => row.topP, 1),
    minP: floats((row) => row.minP, 0),
    repetitionPenalty: floats((row) => row.repetitionPenalty, 1),
    presencePenalty: floats((row) => row.presencePenalty, 0),
    frequencyPenalty: floats((row) => row.frequencyPenalty, 0),
    seed: BigUint64Array.from(rows, (row) => row.seed ?? 0n),
    sequenceIndex: integers((row) => row.sequenceIndex, 0),
    position: integers((row) => row.position, 0),
    noRepeatNgramSize: integers((row) => row.noRepeatNgramSize, 0),
    draftRows: rows.flatMap(({ draft }, row) => (draft === undefined ? [] : [{ row, ...draft }])),
    biases: rows.flatMap(({ bias }, row) => (bias === undefined ? [] : [{ row, ...bias }])),
    penalties: rows.flatMap(({ penalties }, row) => (penalties === undefined ? [] : [{ row, ...penalties }])),
    chains: rows.flatMap(({ chain }, row) => (chain === undefined ? [] : [{ row, values: chain }])),
    numTopLogProbs: integers((row) => row.numTopLogProbs, -1),
    ...(rows.some((row) => row.listsCandidates)
      ? { listsCandidates: integers((row) => (row.listsCandidates ? 1 : 0), 0) }
      : {}),
    bannedStart: Int32Array.from(bannedStart),
    banned: Int32Array.from(allBanned),
    historyStart: Int32Array.from(historyStart),
    history: Int32Array.from(history),
    historyPromptLength: integers((row) => row.prompt?.length, 0),
    tokenMasks: makeTokenMasks(rows, vocabSize),
  };
}

/** Masks in shared memory, those of the last rows first; null where no row has one. */
function makeTokenMasks(rows: readonly SamplingRow[], vocabSize: number): TokenMasks | null {
  const masked = rows.filter(({ allowed }) => allowed !== undefined).reverse();
  if (masked.length === 0) return null;
  const wordsOfMask = Math.ceil(vocabSize / 32);
  const words = new Int32Array(new SharedArrayBuffer(4 * masked.length * wordsOfMask));
  for (const [mask, { allowed }] of masked.entries()) {
    for (const token of allowed!) words[mask * wordsOfMask + (token >> 5)]! |= 1 << (token & 31);
  }
  return { maskOfRow: Int32Array.from(rows, (row) => masked.indexOf(row)), words };
}

/** `numTop`: of all rows together. */
export function makeSamplingOutput(rows: number, numTop = 0): SamplingOutput {
  return {
    tokens: new Int32Array(rows),
    logProbs: new Float32Array(rows),
    topStart: new Int32Array(rows + 1),
    topTokens: new Int32Array(numTop),
    topLogProbs: new Float32Array(numTop),
    status: new Int32Array(rows),
  };
}
