import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING_PARAMS } from '../../callbacks/sampling-params.js';
import { DryPenalty } from '../../engine/decoding/dry-penalty.js';
import { chainValuesOf } from '../../engine/decoding/sampler-chain.js';
import { ChainSampler } from '../../engine/executors/portable/sampling/chain-sampler.js';
import { makeSamplingBatch } from '../../tools/support/sampling-rows.js';
import { type NaiveChain, naiveChain, naiveMirostat } from '../support/naive-chain.js';

interface Golden {
  vocab: number;
  chains: { chain: NaiveChain; seed: number; spread: number; tokens: number[]; probabilities: number[] }[];
  mirostat: {
    version: number;
    tau: number;
    eta: number;
    temperature: number;
    steps: { seed: number; spread: number; tokens: number[]; drawn: number }[];
  }[];
  dry: {
    history: number[];
    multiplier: number;
    base: number;
    allowed: number;
    lastN: number;
    lost: Record<string, number>;
  }[];
}

const golden: Golden = JSON.parse(
  readFileSync(new URL('../goldens/llama-samplers.json', import.meta.url), 'utf8'),
);

/** The logits of tools/reference/llama-samplers.py. */
function logitsOf(seed: number, count: number, spread: number): Float32Array {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state + 1) / (2 ** 31 + 1);
  };
  return Float32Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    return spread * radius * Math.cos(2 * Math.PI * uniform());
  });
}

describe("what llama.cpp's own samplers keep", () => {
  it.each(golden.chains)('is kept by $chain, as probable (spread $spread)', (entry) => {
    const { chain, seed, spread, tokens, probabilities } = entry;
    const logits = logitsOf(seed, golden.vocab, spread);
    const kept = naiveChain(logits, chain, true);
    expect([...kept.keys()].sort((a, b) => a - b)).toEqual(tokens);
    for (const [i, token] of tokens.entries()) expect(kept.get(token)).toBeCloseTo(probabilities[i]!, 5);
    const sampler = new ChainSampler(golden.vocab);
    const { temperature = 1, topK = 0, topP = 1, minP = 0 } = chain;
    const batch = makeSamplingBatch([{ temperature, topK, topP, minP }]);
    const values = chainValuesOf({ ...DEFAULT_SAMPLING_PARAMS, ...chain })!;
    for (let position = 0; position < 100; position++) {
      const key = { seed: 3n, sequenceIndex: 0, position };
      expect(tokens).toContain(sampler.draw(batch, { row: 0, values }, logits, key));
    }
  });

  it.each(golden.mirostat)('is kept by mirostat $version, token after token (tau $tau)', (run) => {
    let mu = 2 * run.tau;
    for (const { seed, spread, tokens, drawn } of run.steps) {
      const logits = logitsOf(seed, golden.vocab, spread);
      const kept = naiveMirostat(logits, { version: run.version, mu, temperature: run.temperature });
      expect([...kept.keys()].sort((a, b) => a - b)).toEqual(tokens);
      mu -= run.eta * (-Math.log2(kept.get(drawn)!) - run.tau);
    }
  });

  it.each(golden.dry)('DRY takes as much (allowed length $allowed, last $lastN): %#', (run) => {
    const sampling = {
      ...DEFAULT_SAMPLING_PARAMS,
      dryMultiplier: run.multiplier,
      dryBase: run.base,
      dryAllowedLength: run.allowed,
      dryPenaltyLastN: run.lastN,
    };
    const history = Int32Array.from(run.history);
    const bias = DryPenalty.of(sampling, [], 8)!.biasBehind(history, history.length);
    const lost = [...(bias?.tokens ?? [])].map((token, i) => [String(token), -bias!.values[i]!] as const);
    expect(lost.map(([token]) => token).sort()).toEqual(Object.keys(run.lost).sort());
    for (const [token, penalty] of lost) expect(penalty / run.lost[token]!).toBeCloseTo(1, 5);
  });
});
