import {
  ROW_NOT_FINITE,
  ROW_OK,
  type SamplingBatch,
  type SamplingOutput,
} from '../../packed-call/sampling-batch.js';
import { philox4x32 } from '../portable/sampling/philox.js';
import { NO_BOUND, SAMPLE } from './sampling-graph.js';
import type { Feed, Session } from './session.js';

/** Temperatures below this are greedy, as in the host's sampler. */
const MIN_TEMPERATURE = Math.fround(1e-5);

/** A row that draws, with the state of its draws so far. */
interface DrawingRow {
  row: number;
  greatest: number;
  logit: number;
  before: number;
  /**
   * Mass from which top-p rejects: if less lies before a drawn token, the token is kept; null before the first draw.
   */
  mass: number | null;
}

/**
 * Draws on the device that holds the logits: greedy, temperature, top-k and top-p. Only tokens and a few numbers per
 * row are copied back.
 */
export class DeviceSampler {
  readonly #session: Session;
  readonly #vocabSize: number;

  constructor(session: Session, vocabSize: number) {
    this.#session = session;
    this.#vocabSize = vocabSize;
  }

  /** Returns false, and writes nothing, if a row needs a feature that only the host's sampler has. */
  sample(sampling: SamplingBatch, output: SamplingOutput): boolean {
    const { numRows } = sampling;
    if (needsHost(sampling)) return false;
    const rows = Array.from({ length: numRows }, (_, row) => row);
    const [best, greatest, broken] = this.#session.run(
      { [SAMPLE.rows]: intsOf(atLeastTwo(rows)) },
      SAMPLE.best,
    );
    const drawing: DrawingRow[] = [];
    output.topStart.fill(0, 0, numRows + 1);
    for (const row of rows) {
      output.tokens[row] = broken![row] ? -1 : best![row]!;
      output.status[row] = broken![row] ? ROW_NOT_FINITE : ROW_OK;
      output.logProbs[row] = 0;
      if (broken![row] || sampling.temperature[row]! < MIN_TEMPERATURE) continue;
      drawing.push({ row, greatest: greatest![row]!, ...NO_BOUND, mass: null });
    }
    this.#boundTopK(sampling, drawing);
    for (let number = 0, left = drawing; left.length > 0; number++)
      left = this.#draw(sampling, output, left, number);
    return true;
  }

  #boundTopK({ topK }: SamplingBatch, drawing: readonly DrawingRow[]): void {
    const bounded = drawing.filter(({ row }) => topK[row]! > 0 && topK[row]! < this.#vocabSize);
    if (bounded.length === 0) return;
    const counts = bounded.map(({ row }) => topK[row]!);
    const feeds = {
      [SAMPLE.rows]: intsOf(bounded.map(({ row }) => row)),
      [SAMPLE.counts]: intsOf(counts),
      [SAMPLE.mostTokens]: { values: Int32Array.of(Math.max(...counts)), shape: [] },
    };
    const [logits, ids] = this.#session.run(feeds, SAMPLE.bounds);
    bounded.forEach((entry, i) => {
      entry.logit = logits![i]!;
      entry.before = ids![i]!;
    });
  }

  /**
   * Draws once for each row; returns the rows that have to draw again, among the tokens before the one that top-p
   * rejects.
   */
  #draw(
    sampling: SamplingBatch,
    output: SamplingOutput,
    drawing: DrawingRow[],
    number: number,
  ): DrawingRow[] {
    const asked = atLeastTwo(drawing);
    const truncates = drawing.some(({ row }) => sampling.topP[row]! < 1);
    const feeds = {
      [SAMPLE.rows]: intsOf(asked.map(({ row }) => row)),
      [SAMPLE.inverseTemperature]: floatsOf(asked.map(({ row }) => 1 / sampling.temperature[row]!)),
      [SAMPLE.greatest]: floatsOf(asked.map(({ greatest }) => greatest)),
      [SAMPLE.least]: floatsOf(asked.map(({ logit }) => logit)),
      [SAMPLE.before]: intsOf(asked.map(({ before }) => before)),
      [SAMPLE.uniform]: uniforms(sampling, asked, number),
    };
    const outputs = truncates ? [...SAMPLE.draw, SAMPLE.weightBefore] : SAMPLE.draw;
    const [tokens, logits, weights, before] = this.#session.run(feeds, outputs);
    return drawing.filter((entry, i) => {
      output.tokens[entry.row] = tokens![i]!;
      const topP = sampling.topP[entry.row]!;
      if (topP >= 1) return false;
      entry.mass ??= topP * weights![i]!;
      entry.logit = logits![i]!;
      entry.before = tokens![i]!;
      return before![i]! > 0 && before![i]! >= entry.mass;
    });
  }
}

/** All threads would add up a single row together, unlike several rows, and round it otherwise; so it is doubled. */
const atLeastTwo = <T>(rows: readonly T[]): readonly T[] => (rows.length === 1 ? [rows[0]!, rows[0]!] : rows);

/** True if the logits are changed, or read for more than drawing. */
function needsHost(sampling: SamplingBatch): boolean {
  const { numRows, bannedStart } = sampling;
  if (
    bannedStart[numRows]! > 0 ||
    (sampling.biases?.length ?? 0) > 0 ||
    (sampling.penalties?.length ?? 0) > 0 ||
    (sampling.chains?.length ?? 0) > 0 ||
    (sampling.draftRows?.length ?? 0) > 0
  )
    return true;
  for (let row = 0; row < numRows; row++) {
    if ((sampling.tokenMasks?.maskOfRow[row] ?? -1) >= 0 || sampling.listsCandidates?.[row]) return true;
    if (sampling.minP[row]! > 0 || sampling.numTopLogProbs[row]! >= 0 || sampling.noRepeatNgramSize[row]! > 0)
      return true;
    if (sampling.repetitionPenalty[row] !== 1) return true;
    if (sampling.presencePenalty[row] !== 0 || sampling.frequencyPenalty[row] !== 0) return true;
  }
  return false;
}

/** Philox's 53 bits as integers of 27 and 26 bits. */
function uniforms(
  { seed, sequenceIndex, position }: SamplingBatch,
  drawing: readonly DrawingRow[],
  number: number,
): Feed {
  const values = new Int32Array(2 * drawing.length);
  drawing.forEach(({ row }, i) => {
    const key = [Number(seed[row]! & 0xffffffffn), Number(seed[row]! >> 32n)];
    const [first, second] = philox4x32([sequenceIndex[row]!, position[row]!, number, 0], key);
    values[2 * i] = first! >>> 5;
    values[2 * i + 1] = ((first! & 31) << 21) | (second! >>> 11);
  });
  return { values, shape: [drawing.length, 2] };
}

const intsOf = (values: readonly number[]): Feed => ({
  values: Int32Array.from(values),
  shape: [values.length],
});
const floatsOf = (values: readonly number[]): Feed => ({
  values: Float32Array.from(values),
  shape: [values.length],
});
