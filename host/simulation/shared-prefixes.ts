import type { ClusterArrival } from './cluster-types.js';
import { EventQueue } from './event-queue.js';

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

interface Turn {
  prefix: Int32Array;
  /** First token behind the prefix; the others count up from it. */
  firstToken: number;
  numTokens: number;
}

/**
 * Conversations that begin with one of several long system prompts, in the order of time. The popularity of a prompt falls with its rank
 * (1/rank). Arrivals of conversations are a Poisson process. Prompts are made when their time comes, so a long trace takes little memory.
 *
 *   prompt 1 | question            | answer, question           | ...
 *   prompt 1 | another's question
 *   prompt 2 | ...
 */
export function* sharedPrefixTrace(options: TraceOptions): Generator<ClusterArrival> {
  const { requests, rate, prefixes, prefixTokens, ownTokens, maxNewTokens, turns, random } = options;
  let nextToken = 1;
  const shared = Array.from({ length: prefixes }, () => {
    nextToken += prefixTokens;
    return upFrom(nextToken - prefixTokens, prefixTokens);
  });
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
  const between = () => -Math.log(1 - random());
  const toCome = new EventQueue<Turn>();
  const until = function* (endMs: number): Generator<ClusterArrival> {
    while (toCome.size > 0 && toCome.nextAt <= endMs) {
      const { at, event } = toCome.pop()!;
      yield { atMs: at, tokens: promptOf(event), maxNewTokens };
    }
  };
  let nowMs = 0;
  for (let index = 0; index < requests; index += turns) {
    nowMs += (between() * 1000 * turns) / rate;
    yield* until(nowMs);
    const prefix = draw();
    const firstToken = nextToken;
    let numTokens = 0;
    let atMs = nowMs;
    for (let turn = 0; turn < turns; turn += 1) {
      numTokens += ownTokens;
      toCome.push(atMs, { prefix, firstToken, numTokens });
      // The answer is part of the next prompt; its tokens are unknown here, so the cache has none of them.
      numTokens += maxNewTokens;
      atMs += THINKING_MS * between();
    }
    nextToken += numTokens;
  }
  yield* until(Number.POSITIVE_INFINITY);
}

function upFrom(first: number, length: number): Int32Array {
  return Int32Array.from({ length }, (_, index) => first + index);
}

function promptOf({ prefix, firstToken, numTokens }: Turn): Int32Array {
  const tokens = new Int32Array(prefix.length + numTokens);
  tokens.set(prefix);
  for (let index = 0; index < numTokens; index += 1) tokens[prefix.length + index] = firstToken + index;
  return tokens;
}
