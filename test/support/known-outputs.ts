import { FINISH_END_ID } from '../../callbacks/response-batch.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { type Answer, type RunResult, sequenceKey } from '../bitwise/run-loop.js';

/** The lists as known_output_ids has them. */
export function knownOutputs(lists: readonly (readonly number[])[]): Record<string, Tensor> {
  const width = Math.max(...lists.map(({ length }) => length));
  const data = new Int32Array(lists.length * width).fill(-1);
  for (const [i, list] of lists.entries()) data.set(list, i * width);
  return { known_output_ids: { shape: [lists.length, width], data } };
}

/** A request and its answer without a break. */
export interface Uncut {
  request: InferenceRequest;
  /** An answer for each of its sequences. */
  answers: readonly Answer[];
  finishReasons: readonly number[];
}

/** A request that continues after the first `cuts[i]` tokens of its sequence i. */
export interface Cut {
  uncut: Uncut;
  cuts: readonly number[];
  request: InferenceRequest;
}

const numberIn = ({ inputs }: InferenceRequest, name: string, otherwise = 0): number =>
  Number(inputs[name]?.data[0] ?? otherwise);

function keysOf(request: InferenceRequest): bigint[] {
  const count = numberIn(request, 'num_return_sequences', 1);
  if (count === 1) return [request.requestId];
  return Array.from({ length: count }, (_, index) => sequenceKey(request.requestId, index));
}

export function uncutOf(
  request: InferenceRequest,
  answers: Map<bigint, Answer>,
  reasons: Map<bigint, number>,
): Uncut {
  const keys = keysOf(request);
  return {
    request,
    answers: keys.map((key) => answers.get(key)!),
    finishReasons: keys.map((key) => reasons.get(key)!),
  };
}

/** `tellsEnds`: a list that has all tokens of a sequence which end_id has ended says so, by its last token. */
export function cutOf(uncut: Uncut, requestId: bigint, cuts: readonly number[], tellsEnds: boolean): Cut {
  const { request, answers, finishReasons } = uncut;
  const lists = answers.map(({ tokens }, i) => {
    const isWhole = cuts[i] === outputOf(uncut, i).length;
    const hasEnded = tellsEnds && isWhole && finishReasons[i] === FINISH_END_ID;
    const known = tokens.slice(0, cuts[i]);
    return hasEnded ? [...known, numberIn(request, 'end_id')] : known;
  });
  const inputs = { ...request.inputs, ...knownOutputs(lists) };
  return { uncut, cuts, request: { ...request, requestId, inputs } };
}

export function outputOf({ answers }: Uncut, sequence: number): readonly number[] {
  return answers[sequence]!.tokens;
}

/**
 * Expected answers to a cut request: the uncut ones without the known tokens, which only a response with the
 * whole sequence repeats; and what is reported about the prompt only where nothing was known.
 */
function expectedOf({ uncut, cuts }: Cut, vocabSize: number): Answer[] {
  const { request, answers } = uncut;
  const isToldAgain = cuts.every((cut) => cut === 0);
  const numTop = numberIn(request, 'top_log_probs');
  const isStreamed = numberIn(request, 'streaming') === 1;
  return answers.map((answer, i) => {
    const cut = cuts[i]!;
    const logProbs = answer.logProbs.slice(cut);
    return {
      ...answer,
      tokens: isStreamed ? answer.tokens.slice(cut) : answer.tokens,
      logProbs,
      cumLogProb: logProbs.reduce((sum, logProb) => sum + logProb, 0),
      topTokens: answer.topTokens.slice(cut * numTop),
      topLogProbs: answer.topLogProbs.slice(cut * numTop),
      generationLogits: answer.generationLogits.slice(cut * vocabSize),
      ...(isToldAgain ? {} : { contextLogits: null, contextLogProbs: null, contextTopTokens: null }),
    };
  });
}

/** The first difference between what was answered and what had to be, with its place; null: none. */
export function firstDifference(
  cut: Cut,
  { answers, finishReasons }: RunResult,
  vocabSize: number,
): string | null {
  const expected = expectedOf(cut, vocabSize);
  for (const [i, key] of keysOf(cut.request).entries()) {
    const found = answers.get(key);
    const where = `request ${cut.uncut.request.requestId} cut at ${cut.cuts.join()}, sequence ${i}`;
    if (found === undefined) return `${where}: no answer`;
    if (found.error !== '') return `${where}: ${found.error}`;
    const reason = finishReasons.get(key);
    if (reason !== cut.uncut.finishReasons[i]) {
      return `${where}: ended by ${reason}, not ${cut.uncut.finishReasons[i]}`;
    }
    const wrong = fieldOfDifference(found, expected[i]!);
    if (wrong !== null) return `${where}: ${wrong}`;
  }
  return null;
}

function fieldOfDifference(found: Answer, expected: Answer): string | null {
  for (const field of Object.keys(expected) as (keyof Answer)[]) {
    const [a, b] = [found[field], expected[field]];
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
      if (a !== b) return `${field} is ${String(a)}, not ${String(b)}`;
      continue;
    }
    if (a.length !== b.length) return `${field} has ${a.length} entries, not ${b.length}`;
    const place = b.findIndex((value, at) => !Object.is(a[at], value));
    if (place >= 0) return `${field} has ${a[place]} at ${place}, not ${b[place]}`;
  }
  return null;
}
