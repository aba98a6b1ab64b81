import type { SimulationInput } from '../../../../engine/simulation/simulation-input.js';
import type { NaiveRequest } from './naive-request.js';

export interface OracleStep {
  request: NaiveRequest;
  /** Context tokens; 0 while generating. */
  tokens: number;
}

/** Number of tokens that each request with capacity runs, contexts first. */
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
  const batch = [
    ...steps.filter(({ tokens }) => tokens > 0),
    ...generation.map((request) => ({ request, tokens: 0 })),
  ];
  for (const request of scheduled) request.passedOver += 1;
  for (const { request } of batch) request.passedOver = 0;
  return batch;
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
  if (policy === 'SHORTEST_FIRST') {
    const give = (place: number) => {
      const { contextLeft } = contexts[place]!;
      const size = Math.min(contextLeft, left(), maxContextLength);
      sizes[place] = size < contextLeft ? Math.floor(size / unit) * unit : size;
    };
    const ends = () => contexts.some(({ contextLeft }, place) => sizes[place] === contextLeft);
    for (let from = 0; from < contexts.length; ) {
      const priority = contexts[from]!.asked.priority ?? 0.5;
      const places: number[] = [];
      while (from < contexts.length && (contexts[from]!.asked.priority ?? 0.5) === priority)
        places.push(from++);
      const turn = contexts[places[0]!]!.passedOver >= 3 ? places[0]! : -1;
      if (turn >= 0) give(turn);
      places.sort((a, b) => contexts[a]!.contextLeft - contexts[b]!.contextLeft || a - b);
      const others = places.filter((place) => place !== turn);
      for (const place of others) {
        const { contextLeft } = contexts[place]!;
        if (contextLeft <= left() && contextLeft <= maxContextLength) give(place);
      }
      if (ends()) continue;
      for (const place of others) if (sizes[place] === 0) give(place);
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
