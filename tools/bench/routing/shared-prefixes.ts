import type { ClusterArrival } from '../../../engine/simulation/cluster-simulation.js';

export interface TraceOptions {
  requests: number;
  /** Requests a second, arriving at random. */
  rate: number;
  /** Beginnings that requests share, the more popular ones more often. */
  prefixes: number;
  /** Tokens of a shared beginning, and of what is a request's own. */
  prefixTokens: number;
  ownTokens: number;
  maxNewTokens: number;
  /** Turns of a conversation: each later one begins with all of the one before. */
  turns: number;
  /** 0 (included) to 1 (excluded). */
  random: () => number;
}

/** Milliseconds between two turns of a conversation, about. */
const THINKING_MS = 4_000;

/**
 * Conversations that begin with one of several long system prompts. The popularity of a prompt falls with its rank (1/rank). Arrivals of
 * conversations are a Poisson process.
 *
 *   prompt 1 | question            | answer, question           | ...
 *   prompt 1 | another's question
 *   prompt 2 | ...
 */
export function sharedPrefixTrace(options: TraceOptions): ClusterArrival[] {
  const { requests, rate, prefixes, prefixTokens, ownTokens, maxNewTokens, turns, random } = options;
  let nextToken = 1;
  const fresh = (length: number) => Array.from({ length }, () => nextToken++);
  const shared = Array.from({ length: prefixes }, () => fresh(prefixTokens));
  const weights = shared.map((_, rank) => 1 / (rank + 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const draw = () => {
    let left = random() * total;
    let rank = 0;
    while (rank < prefixes - 1 && left >= weights[rank]!) {
      left -= weights[rank]!;
      rank += 1;
    }
    return shared[rank]!;
  };
  const arrivals: ClusterArrival[] = [];
  const between = () => -Math.log(1 - random());
  let nowMs = 0;
  for (let index = 0; index < requests; index += turns) {
    nowMs += (between() * 1000 * turns) / rate;
    let tokens = [...draw()];
    let atMs = nowMs;
    for (let turn = 0; turn < turns; turn += 1) {
      tokens = [...tokens, ...fresh(ownTokens)];
      arrivals.push({ atMs, tokens: Int32Array.from(tokens), maxNewTokens });
      // The answer is part of the next prompt; its tokens are unknown here, so the cache has none of them.
      tokens = [...tokens, ...fresh(maxNewTokens)];
      atMs += THINKING_MS * between();
    }
  }
  return arrivals.sort((left, right) => left.atMs - right.atMs);
}
