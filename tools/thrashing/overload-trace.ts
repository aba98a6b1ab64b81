import { Random } from '../support/random.js';

export interface TraceRequest {
  id: number;
  arrivalIteration: number;
  promptLength: number;
  maxNewTokens: number;
}

export interface TraceOptions {
  requests: number;
  /** Arrivals in an iteration, on average. */
  rate: number;
  /** Shortest and longest prompt; every length between is as likely. */
  promptLength: readonly [number, number];
  /** Mean of the exponential lengths of the answers; none is longer than four times the mean. */
  newTokens: number;
  seed: number;
}

/** Requests that come faster than the pool can take them. The same seed gives the same trace on every machine. */
export function overloadTrace(options: TraceOptions): TraceRequest[] {
  const random = new Random(options.seed);
  const exponential = () => -Math.log(1 - random.uniform());
  const [shortest, longest] = options.promptLength;
  let time = 0;
  return Array.from({ length: options.requests }, (_, id) => {
    time += exponential() / options.rate;
    return {
      id,
      arrivalIteration: Math.floor(time),
      promptLength: shortest + random.below(longest - shortest + 1),
      maxNewTokens: Math.max(1, Math.ceil(options.newTokens * Math.min(4, exponential()))),
    };
  });
}
