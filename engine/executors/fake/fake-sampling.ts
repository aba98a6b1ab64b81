import { CHAIN } from '../../decoding/sampler-chain.js';
import type { RowLogProbs } from '../../packed-call/packed-batch.js';
import {
  type DraftRow,
  ROW_NO_TOKEN_LEFT,
  ROW_OK,
  type SamplingBatch,
  type SamplingOutput,
} from '../../packed-call/sampling-batch.js';
import { mix } from './fake-rows.js';

/** Log-softmax of a row, as a real executor gives it. */
export function writeLogProbs(target: RowLogProbs, index: number, logits: Float32Array): void {
  const norm = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  const { tokens, logProbs, numTop, topTokens, topLogProbs } = target;
  logProbs[index] = tokens[index]! < 0 ? Number.NaN : logits[tokens[index]!]! - norm;
  if (numTop === 0) return;
  const best = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b);
  for (let i = 0; i < numTop; i++) {
    topTokens[index * numTop + i] = best[i]!;
    topLogProbs[index * numTop + i] = logits[best[i]!]! - norm;
  }
}

/** Lists candidates whose log-probs are hashes too. */
export function listCandidates(
  hash: number,
  isBanned: (token: number) => boolean,
  into: { sampling: SamplingBatch; output: SamplingOutput; row: number; vocabSize: number },
): void {
  const { sampling, output, row, vocabSize } = into;
  const logProbs = Float32Array.from({ length: vocabSize }, (_, token) =>
    isBanned(token) ? -Infinity : -(mix(hash, token) >>> 8) / 2 ** 21,
  );
  const order = [...logProbs.keys()].sort((a, b) =>
    logProbs[a] === logProbs[b] ? a - b : logProbs[b]! - logProbs[a]!,
  );
  const first = output.topStart[row]!;
  for (let i = 0; i < sampling.numTopLogProbs[row]!; i++) {
    output.topTokens[first + i] = order[i]!;
    output.topLogProbs[first + i] = logProbs[order[i]!]!;
  }
  output.tokens[row] = order[0]!;
  output.logProbs[row] = logProbs[order[0]!]!;
  output.status[row] = output.logProbs[row]! > -Infinity ? ROW_OK : ROW_NO_TOKEN_LEFT;
}

/** Returns the draft's token most of the time, else one that depends on its logits. */
export function drawnAgainst({ token, logits }: DraftRow, hash: number, vocabSize: number): number {
  const mixed = mix(hash, Math.round(logits[token]! * 1000));
  return mixed % 4 > 0 ? token : (mixed >>> 2) % vocabSize;
}

/** Folds in everything of the row that a real sampler reads. Greedy rows read no random numbers. */
export function hashParameters(hash: number, sampling: SamplingBatch, row: number): number {
  let mixed = mix(hash, sampling.position[row]!);
  const start = sampling.historyStart[row]!;
  const end = sampling.historyStart[row + 1]!;
  for (let i = start; i < end; i++) mixed = mix(mixed, sampling.history[i]!);
  if (end > start) mixed = mix(mixed, sampling.historyPromptLength[row]!);
  if (sampling.noRepeatNgramSize[row]! > 0) mixed = mix(mixed, sampling.noRepeatNgramSize[row]!);
  const added = [...(sampling.biases ?? []), ...(sampling.penalties ?? [])];
  for (const { tokens, values } of added.filter((bias) => bias.row === row)) {
    for (const [i, value] of values.entries()) {
      if (value !== 0) mixed = mix(mix(mixed, tokens?.[i] ?? i), Math.round(value * 1000));
    }
  }
  if (sampling.temperature[row] === 0) return mixed;
  mixed = mix(mixed, Number(BigInt.asUintN(32, sampling.seed[row]!)));
  if (sampling.sequenceIndex[row]! > 0) mixed = mix(mixed, sampling.sequenceIndex[row]!);
  mixed = mix(mixed, Math.round(sampling.temperature[row]! * 1000));
  mixed = mix(mixed, sampling.topK[row]!);
  mixed = mix(mixed, Math.round(sampling.topP[row]! * 1000));
  const chain = sampling.chains?.find((one) => one.row === row);
  if (chain === undefined) return mixed;
  const { values } = chain;
  for (const value of values.subarray(0, CHAIN.mirostatMuAfter)) mixed = mix(mixed, Math.round(value * 1000));
  values[CHAIN.mirostatMuAfter] = (mixed >>> 0) % 1000;
  return mixed;
}
