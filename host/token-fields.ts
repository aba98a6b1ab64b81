import { closestName } from '../base/did-you-mean.js';
import { isObject, shown as shownValue } from '../base/option-values.js';
import {
  DEFAULT_SAMPLING_PARAMS,
  ParameterError,
  type SamplingParams,
} from '../callbacks/sampling-params.js';
import type { TokenRequest } from '../callbacks/token-request.js';

type OwnFields = Record<Exclude<keyof TokenRequest, keyof SamplingParams>, true>;

const OWN_FIELDS = {
  promptTokens: true,
  maxNewTokens: true,
  promptEmbeddings: true,
  positionIds: true,
  endTokenIds: true,
  stopWords: true,
  badWords: true,
  allowedTokens: true,
  dryBreakers: true,
  reasoningBudget: true,
  logitBias: true,
  embeddingBias: true,
  returnLogProbs: true,
  topLogProbs: true,
  returnGenerationLogits: true,
  returnContextLogits: true,
  returnContextLogProbs: true,
  topContextLogProbs: true,
  returnContextProgress: true,
  numSequences: true,
  firstSequenceIndex: true,
  knownOutputIds: true,
  beams: true,
  streaming: true,
  priority: true,
  signal: true,
  timeLimitMs: true,
  cacheSalt: true,
  loraTaskId: true,
  adapter: true,
  adapterName: true,
  retention: true,
  logitsPostProcessor: true,
  draftTokens: true,
  draftLogits: true,
  maxDraftLen: true,
  guide: true,
  label: true,
  queueKey: true,
  queueWeight: true,
  clientId: true,
  shared: true,
} satisfies OwnFields;

const FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(OWN_FIELDS),
  ...Object.keys(DEFAULT_SAMPLING_PARAMS),
]);

/**
 * Refuses a field that a request does not have, which would be left out without a word, and a signal that is none, which would fail at the
 * request's end. @throws ParameterError
 */
export function checkTokenFields(request: TokenRequest): void {
  for (const name of Object.keys(request)) {
    if (FIELDS.has(name) || request[name as keyof TokenRequest] === undefined) continue;
    const known = [...FIELDS];
    const meant = closestName(name, known);
    const hint = meant === null ? `known are ${known.join(', ')}.` : `did you mean ${meant}?`;
    const shown = name.slice(0, 64);
    throw new ParameterError(shown, `${shown} is not a field of a request; ${hint}`);
  }
  const { signal } = request as { signal?: unknown };
  if (signal !== undefined && !isSignal(signal)) {
    throw new ParameterError('signal', `signal is ${shownValue(signal)}; it must be an AbortSignal.`);
  }
}

function isSignal(value: unknown): boolean {
  return (
    isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function'
  );
}
