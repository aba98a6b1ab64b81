import type { SimulationIteration, SimulationResult } from '../../../engine/simulation/simulate.js';
import type { SimulationInput, SimulationRequest } from '../../../engine/simulation/simulation-input.js';

/** Blocks of 4 tokens; enough requests; nothing else limits. */
export const BASE: Omit<SimulationInput, 'requests'> = {
  policy: 'GUARANTEED_NO_EVICT',
  numBlocks: 8,
  tokensPerBlock: 4,
  maxNumRequests: 8,
};

/** In the order of the tests: id, arrival, prompt (a length, or the tokens), new tokens. */
export function request(
  id: string | number,
  arrivalIteration: number,
  prompt: number | number[],
  maxNewTokens = 1,
  more: Partial<SimulationRequest> = {},
): SimulationRequest {
  const length = typeof prompt === 'number' ? { promptLength: prompt } : { tokens: prompt };
  return { id, arrivalIteration, ...length, maxNewTokens, ...more };
}

/** 1 2 3 ... length. */
export const upTo = (length: number) => Array.from({ length }, (_, index) => index + 1);

/** An iteration as a line: "active | what ran | paused | used/free". */
export function lines({ iterations }: SimulationResult): string[] {
  return iterations.map((iteration, index) => {
    if (iteration.iteration !== index)
      throw new Error(`Iteration ${index} is called ${iteration.iteration}.`);
    return line(iteration);
  });
}

/** "active | what ran | paused | used/free reused". */
export function linesWithReuse({ iterations }: SimulationResult): string[] {
  return iterations.map((iteration) => `${line(iteration)} ${iteration.blocks.reused}`);
}

function line({ active, scheduled, paused, blocks }: SimulationIteration): string {
  const ran = scheduled.map(({ id, phase, contextBefore, contextAfter, generated }) => {
    const span = phase === 'context' ? `${contextBefore}-${contextAfter}` : 'gen';
    return `${id} ${span} ${generated}`;
  });
  return `${active.join(' ')} | ${ran.join(', ')} | ${paused.join(' ')} | ${blocks.used}/${blocks.free}`;
}

/** [first, last, pauses] by id. */
export function spans({ requests }: SimulationResult): Record<string, number[]> {
  return Object.fromEntries(
    requests.map(({ id, firstIteration, lastIteration, pauses }) => [
      id,
      [firstIteration, lastIteration, pauses],
    ]),
  );
}
