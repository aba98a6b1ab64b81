import type { SimulationInput } from '../../../../engine/simulation/simulation-input.js';
import type { NaiveRequest } from './naive-request.js';

export interface OracleStep {
  request: NaiveRequest;
  /** Of context; 0 while generating. */
  tokens: number;
}

/** How many tokens each request with capacity runs; contexts first. */
export function microBatchRules(input: SimulationInput, scheduled: readonly NaiveRequest[]): OracleStep[] {
  const {
    maxNumRequests,
    maxBatchSize = maxNumRequests,
    maxNumTokens = Number.POSITIVE_INFINITY,
    chunk,
  } = input;
  const taken: NaiveRequest[] = [];
  let left = maxNumTokens;
  for (const request of scheduled) {
    let cost = 0;
    if (request.isGenerating) cost = request.beamWidth + request.draft;
    else if (!chunk) cost = request.contextLeft + request.draft;
    if (taken.length === maxBatchSize || cost > left) break;
    left -= cost;
    taken.push(request);
  }
  const contexts = taken.filter(({ isGenerating }) => !isGenerating);
  const sizes = chunk ? chunkSizes(chunk, contexts, left) : contexts.map(({ contextLeft }) => contextLeft);
  const steps = contexts.map((request, place) => ({ request, tokens: sizes[place]! }));
  const generation = taken.filter(({ isGenerating }) => isGenerating);
  return [
    ...steps.filter(({ tokens }) => tokens > 0),
    ...generation.map((request) => ({ request, tokens: 0 })),
  ];
}

function chunkSizes(
  { unit, policy, maxContextLength = Number.POSITIVE_INFINITY }: NonNullable<SimulationInput['chunk']>,
  contexts: readonly NaiveRequest[],
  capacity: number,
): number[] {
  const whole = contexts.map(({ contextLeft, draft }) => contextLeft + draft);
  const sum = whole.reduce((total, size) => total + size, 0);
  const sizes = contexts.map(() => 0);
  if (sum <= capacity && whole.every((size) => size <= maxContextLength)) {
    return contexts.map(({ contextLeft }) => contextLeft);
  }
  const left = () => capacity - sizes.reduce((total, size) => total + size, 0);
  if (policy === 'FIRST_COME_FIRST_SERVED') {
    for (const [place, { contextLeft }] of contexts.entries()) {
      const size = Math.min(contextLeft, left(), maxContextLength);
      sizes[place] = size < contextLeft ? Math.floor(size / unit) * unit : size;
    }
    return sizes;
  }
  for (let passHadProgress = true; passHadProgress; ) {
    passHadProgress = false;
    for (const [place, { contextLeft }] of contexts.entries()) {
      const more = Math.min(unit, contextLeft - sizes[place]!);
      if (more > 0 && more <= left() && sizes[place]! + more <= maxContextLength) {
        sizes[place]! += more;
        passHadProgress = true;
      }
    }
  }
  return sizes;
}
