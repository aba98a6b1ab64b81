import { StopStrings } from '../../models/tokenizer/stop-strings.js';
import type { TextRequest } from './text-generation.js';
import type { TextModel } from './text-model.js';

/** Bytes of a prompt token: in the request, in its tensor, in the message to the engine and in the engine. */
const PER_PROMPT_TOKEN = 24;
/** Bytes of one engine request's tensors, in both threads. */
const PER_ENGINE_REQUEST = 8 * 1024;
/** Bytes of an answer's token: its id, its text, the JSON around it. */
const PER_ANSWER_TOKEN = 64;
/** Bytes of a log-prob: the object, its JSON, and the text of that. */
export const PER_LOG_PROB = 256;
/** Bytes of a logit, in both threads. */
const PER_LOGIT = 8;

/**
 * Bytes of a request of the engine and of all that it may answer, if nothing is read before its end.
 * @param count answers
 */
export function answerMemory(
  model: Pick<TextModel, 'fitsTogether' | 'vocabSize'>,
  request: TextRequest,
  count: number,
): number {
  return inputMemory(model, request, count) + outputMemory(model, request, count);
}

function inputMemory(model: Pick<TextModel, 'fitsTogether'>, request: TextRequest, count: number): number {
  const { promptTokens, maxTokens, logitBias, badWords = [], stop = [], stopTokens = [], guide } = request;
  const { dryBreakers = [], allowedTokens } = request;
  const isOne = count === 1 || (model.fitsTogether?.(count, promptTokens.length, maxTokens) ?? false);
  const words = [...badWords, ...dryBreakers].reduce(
    (sum, word) => sum + word.length,
    StopStrings.of(stop).texts.length + stopTokens.length,
  );
  const bytes =
    PER_ENGINE_REQUEST +
    PER_PROMPT_TOKEN *
      (promptTokens.length + words + 2 * (logitBias?.size ?? 0) + (allowedTokens?.length ?? 0)) +
    2 * (guide?.guide.length ?? 0);
  return (isOne ? 1 : count) * bytes;
}

function outputMemory(
  { vocabSize }: Pick<TextModel, 'vocabSize'>,
  request: TextRequest,
  count: number,
): number {
  const { promptTokens, maxTokens, logProbs, contextLogProbs } = request;
  const { returnContextLogits = false, returnGenerationLogits = false } = request;
  const perToken =
    PER_ANSWER_TOKEN +
    (logProbs === undefined ? 0 : PER_LOG_PROB * (1 + logProbs)) +
    (returnGenerationLogits ? PER_LOGIT * vocabSize : 0);
  const ofPrompt =
    contextLogProbs === undefined ? 0 : PER_LOG_PROB * (1 + contextLogProbs) * promptTokens.length;
  const promptLogits = returnContextLogits ? PER_LOGIT * vocabSize * promptTokens.length : 0;
  // Each choice repeats the values of its prompt.
  return count * (perToken * maxTokens + ofPrompt) + promptLogits;
}
