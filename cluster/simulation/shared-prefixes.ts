import type { ClusterArrival } from './cluster-types.js';
import { EventQueue } from './event-queue.js';
import { TokenBuffers } from './token-buffers.js';

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
  /** Prompts of one length are in one array, each until the next one comes: for who copies them. Default: each has an array of its own. */
  sharesArrays?: boolean;
}

/** Milliseconds between two turns of a conversation, about. */
const THINKING_MS = 4_000;

/** A prompt that is to come: two rows of tokens that count up. */
interface Turn {
  firstOfPrefix: number;
  firstOfOwn: number;
  numOwn: number;
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
  const buffers = new TokenBuffers();
  let nextToken = 1 + prefixes * prefixTokens;
  const draw = byRank(prefixes, random);
  const between = () => -Math.log(1 - random());
  const toCome = new EventQueue<Turn>();
  const until = function* (endMs: number): Generator<ClusterArrival> {
    while (toCome.size > 0 && toCome.nextAt <= endMs) {
      const { at, event } = toCome.pop()!;
      const tokens = buffers.take(prefixTokens + event.numOwn);
      writePrompt(event, prefixTokens, tokens);
      yield { atMs: at, tokens, maxNewTokens };
      if (options.sharesArrays) buffers.give(tokens);
    }
  };
  let nowMs = 0;
  for (let index = 0; index < requests; index += turns) {
    nowMs += (between() * 1000 * turns) / rate;
    yield* until(nowMs);
    const firstOfPrefix = 1 + draw() * prefixTokens;
    const firstOfOwn = nextToken;
    let numOwn = 0;
    let atMs = nowMs;
    for (let turn = 0; turn < turns; turn += 1) {
      numOwn += ownTokens;
      toCome.push(atMs, { firstOfPrefix, firstOfOwn, numOwn });
      // The answer is part of the next prompt; its tokens are unknown here, so the cache has none of them.
      numOwn += maxNewTokens;
      atMs += THINKING_MS * between();
    }
    nextToken += numOwn;
  }
  yield* until(Number.POSITIVE_INFINITY);
}

/** Draws ranks from 0 to count - 1, each 1 / (rank + 1) times as often as the first. */
function byRank(count: number, random: () => number): () => number {
  const sums = new Float64Array(count);
  let total = 0;
  for (let rank = 0; rank < count; rank += 1) {
    total += 1 / (rank + 1);
    sums[rank] = total;
  }
  return () => {
    const drawn = random() * total;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

function writePrompt(
  { firstOfPrefix, firstOfOwn, numOwn }: Turn,
  prefixTokens: number,
  tokens: Int32Array,
): void {
  for (let index = 0; index < prefixTokens; index += 1) tokens[index] = firstOfPrefix + index;
  for (let index = 0; index < numOwn; index += 1) tokens[prefixTokens + index] = firstOfOwn + index;
}
