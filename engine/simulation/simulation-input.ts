import * as z from 'zod';
import { MAX_INT32 } from '../../base/int32.js';
import { SkeinError } from '../../base/skein-error.js';
import { CAPACITY_POLICIES, CHUNKING_POLICIES } from '../../scheduler/tokens/types.js';

/** Most iterations; beyond that a simulation is given up. */
export const MAX_ITERATIONS = 100_000;
const MAX_REQUESTS = 10_000;
const MAX_BLOCKS = 10_000_000;
const MAX_TOKENS = 1_000_000;
const MAX_BEAM_WIDTH = 1024;

/** The file or object asks for something that does not exist or does not fit. The message names field, value and limit. */
export class SimulationInputError extends SkeinError {
  override name = 'SimulationInputError';
  override readonly code = 'SKEIN_SIMULATION_INPUT';
}

const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

const oneOf = <const T extends readonly string[]>(names: T) =>
  z.enum(names, { error: `must be one of ${names.join(', ')}` });

/** Schema of a field that is known but cannot work yet; only the value that changes nothing is accepted. */
const refused = (harmless: unknown, why: string) =>
  z.custom<never>((value) => value === undefined || value === harmless, {
    error: `is refused: ${why}`,
    params: { refused: true },
  });

const ID_RULE = `must be a text of 1 to 200 characters or a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;

function isId(value: unknown): boolean {
  if (typeof value === 'string') return value.length >= 1 && value.length <= 200;
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const request = z.strictObject(
  {
    id: z.custom<number | string>(isId, { error: ID_RULE }),
    arrivalIteration: whole(0, MAX_ITERATIONS - 1),
    promptLength: whole(1, MAX_TOKENS).optional(),
    tokens: z
      .array(whole(0, MAX_INT32), { error: 'must be an array of token ids' })
      .min(1, { error: 'must hold at least 1 token' })
      .max(MAX_TOKENS, { error: `must hold at most ${MAX_TOKENS} tokens` })
      .optional(),
    maxNewTokens: whole(1, MAX_ITERATIONS),
    beamWidth: whole(1, MAX_BEAM_WIDTH).optional(),
    priority: z
      .number({ error: 'must be a number from 0 to 1' })
      .min(0, { error: 'must be a number from 0 to 1' })
      .max(1, { error: 'must be a number from 0 to 1' })
      .optional(),
    draftLength: whole(0, MAX_TOKENS).optional(),
    loraTaskId: refused(undefined, 'LoRA adapters are not simulated').optional(),
  },
  { error: 'must be an object' },
);

const chunk = z.strictObject(
  {
    unit: whole(1, MAX_TOKENS),
    policy: oneOf(CHUNKING_POLICIES),
    maxContextLength: whole(1, MAX_TOKENS).optional(),
  },
  { error: 'must be an object' },
);

const simulation = z.strictObject(
  {
    policy: oneOf(CAPACITY_POLICIES),
    numBlocks: whole(1, MAX_BLOCKS),
    tokensPerBlock: whole(1, MAX_TOKENS),
    maxAttentionWindow: whole(1, MAX_INT32).optional(),
    sinkTokenLength: whole(0, MAX_INT32).optional(),
    maxNumRequests: whole(1, MAX_INT32),
    maxBatchSize: whole(1, MAX_INT32).optional(),
    maxNumTokens: whole(1, MAX_INT32).optional(),
    chunk: chunk.optional(),
    maxWaitIterations: whole(1, MAX_ITERATIONS).optional(),
    startHorizon: whole(1, MAX_INT32).optional(),
    enableBlockReuse: z.boolean({ error: 'must be true or false' }).optional(),
    requests: z
      .array(request, { error: 'must be an array of requests' })
      .min(1, { error: 'must hold at least 1 request' })
      .max(MAX_REQUESTS, { error: `must hold at most ${MAX_REQUESTS} requests` }),
  },
  { error: 'must be an object' },
);

/** Input of a simulation: see `simulate`. */
export type SimulationInput = z.input<typeof simulation>;
export type SimulationRequest = SimulationInput['requests'][number];

/** Checks the input. @throws SimulationInputError for the first error found */
export function checkSimulationInput(input: unknown): SimulationInput {
  const parsed = simulation.safeParse(input);
  if (!parsed.success) throw new SimulationInputError(sentence(parsed.error.issues[0]!, input));
  checkTogether(parsed.data);
  return parsed.data;
}

function checkTogether({ requests, ...sizes }: SimulationInput): void {
  checkSizes(sizes);
  const seen = new Map<string, number>();
  for (const [index, { id, promptLength, tokens }] of requests.entries()) {
    const field = `requests[${index}]`;
    const first = seen.get(String(id));
    if (first !== undefined) {
      throw new SimulationInputError(
        `${field}.id is ${JSON.stringify(id)}; it must differ from requests[${first}].id.`,
      );
    }
    seen.set(String(id), index);
    if ((promptLength === undefined) === (tokens === undefined)) {
      const found = tokens === undefined ? 'neither' : 'both';
      throw new SimulationInputError(`${field} must have either promptLength or tokens; it has ${found}.`);
    }
  }
}

function checkSizes({
  numBlocks,
  tokensPerBlock,
  maxAttentionWindow,
  sinkTokenLength = 0,
}: Omit<SimulationInput, 'requests'>): void {
  if (numBlocks * tokensPerBlock > MAX_INT32) {
    throw new SimulationInputError(
      `numBlocks is ${numBlocks}; with tokensPerBlock = ${tokensPerBlock} it must be at most ` +
        `${Math.floor(MAX_INT32 / tokensPerBlock)}.`,
    );
  }
  if (sinkTokenLength === 0 || (maxAttentionWindow !== undefined && sinkTokenLength < maxAttentionWindow))
    return;
  const limit =
    maxAttentionWindow === undefined
      ? 'without maxAttentionWindow it must be 0'
      : `with maxAttentionWindow = ${maxAttentionWindow} it must be at most ${maxAttentionWindow - 1}`;
  throw new SimulationInputError(`sinkTokenLength is ${sinkTokenLength}; ${limit}.`);
}

function sentence(issue: z.core.$ZodIssue, input: unknown): string {
  const field = fieldName(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const where = field === '' ? 'The simulation' : field;
    return `${where} has an unknown field ${issue.keys[0]}; fields: ${knownFields(issue.path).join(', ')}.`;
  }
  const where = field === '' ? 'The simulation' : field;
  const value = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], input);
  if (value === undefined) return `${where} is missing; it ${issue.message}.`;
  return issue.code === 'custom' && issue.params?.refused === true
    ? `${where} = ${shown(value)} ${issue.message}.`
    : `${where} is ${shown(value)}; it ${issue.message}.`;
}

/** Name of a field in messages, for example requests[3].promptLength. */
function fieldName(path: readonly PropertyKey[]): string {
  let name = '';
  for (const key of path)
    name += typeof key === 'number' ? `[${key}]` : `${name === '' ? '' : '.'}${String(key)}`;
  return name;
}

function knownFields(path: readonly PropertyKey[]): string[] {
  if (path[0] === 'chunk') return Object.keys(chunk.shape);
  return Object.keys(path[0] === 'requests' ? request.shape : simulation.shape);
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value));
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}
