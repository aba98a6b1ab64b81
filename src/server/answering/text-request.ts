import { createHash, randomUUID } from 'node:crypto';
import type { Guide } from '../../../callbacks/guide.js';
import type { TokenBeams } from '../../../callbacks/token-request.js';
import type { Retention } from '../../../kvcache/retention.js';
import { badWordTokens } from '../../generation/bad-words.js';
import { biasByToken } from '../../generation/bias-texts.js';
import { dryBreakerTokens } from '../../generation/dry-breakers.js';
import type { AskedRequest } from '../../generation/pictures/seen-request.js';
import type { TextRequest } from '../../generation/text-generation.js';
import type { PromptTokens } from '../../generation/text-model.js';
import { parametersOf } from '../../schemas/parameter-fields.js';
import { DEFAULT_MAX_LOG_PROBS, type ServedGenerator } from '../../serving/served-model.js';
import { ApiError } from '../web/errors.js';
import type { ChoiceCounts } from './choice-run.js';
import type { CommonRequest } from './schemas/common.js';

/** Makes the part of a request that both routes read alike. */
export function textRequest(
  request: CommonRequest,
  fields: {
    promptTokens: PromptTokens;
    promptParam: string;
    maxTokens: number;
    encoded: EncodedFields;
    logProbs?: number | undefined;
    contextLogProbs?: number | undefined;
    guide?: Guide | undefined;
    guideParam?: string | undefined;
    shownTokens?: TextRequest['shownTokens'];
    createParser?: TextRequest['createParser'];
    unseen?: AskedRequest['unseen'];
    reasoningBudget?: TextRequest['reasoningBudget'];
  },
): AskedRequest {
  if (request.min_tokens !== undefined && request.min_tokens > fields.maxTokens) {
    throw new ApiError(
      400,
      `'min_tokens' is ${request.min_tokens}, but the answer has ${fields.maxTokens} tokens at most.`,
      { param: 'min_tokens' },
    );
  }
  const { encoded, ...given } = fields;
  return {
    ...given,
    ...encoded,
    ...parametersOf(request),
    ...repetitionOf(request),
    allowedTokens: request.allowed_token_ids,
    stop: request.stop,
    beams: beamsOf(request),
    stopTokens: request.stop_token_ids,
    ignoreEos: request.ignore_eos,
    includeStop: request.include_stop_str_in_output,
    skipSpecialTokens: request.skip_special_tokens,
    contextProgress: (request.return_progress && request.stream) ?? false,
    maxDraftLen: request.max_draft_len,
    priority: enginePriority(request.priority),
    timeLimitMs: request.time_limit_ms,
    cacheSalt: requestSalt(request),
    retention: request.cache_prompt === false ? KEPT_FOR_NOBODY : undefined,
  };
}

/**
 * The engine's priority, 0 to 1; higher comes first. Numbers outside that range are vLLM's, unbounded, where
 * lower comes first: those above 1 rank after the default of 0.5, those below 0 before it.
 *
 *   vLLM    -1000 ...   -1 |  1.1 ...   5 ... 1000
 *   here    0.9995 ... 0.75 | 0.238 ... 0.083 ... 0.0005
 */
export function enginePriority(given: number | undefined): number | undefined {
  if (given === undefined || (given >= 0 && given <= 1)) return given;
  return 0.5 - (0.5 * given) / (1 + Math.abs(given));
}

/** Tokens that llama.cpp's repeat_penalty sees. */
const DEFAULT_LAST_N = 64;

/** Penalty for repetitions under one of its names. @throws ApiError for both. */
function repetitionOf(request: CommonRequest): Pick<TextRequest, 'repetitionPenalty' | 'penaltyLastN'> {
  const { repetition_penalty: ours, repeat_penalty: theirs, repeat_last_n: lastN } = request;
  if (ours !== undefined && theirs !== undefined && ours !== theirs) {
    throw new ApiError(400, "'repetition_penalty' and 'repeat_penalty' exclude each other.", {
      param: 'repeat_penalty',
    });
  }
  const isTheirs = theirs !== undefined && theirs !== 1;
  return {
    repetitionPenalty: ours ?? theirs,
    penaltyLastN: lastN ?? (isTheirs ? DEFAULT_LAST_N : undefined),
  };
}

/** Most tokens of the answer under one of the names for it; undefined: no limit is given. @throws ApiError for both names. */
export function tokensAsked({
  max_tokens: most,
  n_predict: predicted,
}: Pick<CommonRequest, 'max_tokens' | 'n_predict'>): number | undefined {
  if (predicted === undefined || predicted < 0) return most;
  if (most === undefined || most === predicted) return predicted;
  throw new ApiError(400, "'max_tokens' and 'n_predict' exclude each other.", { param: 'n_predict' });
}

/** Most answers to all prompts of a request, returned or only compared: four times the default queue. */
const MAX_ANSWERS = 1024;

/**
 * Numbers of answers to return and to generate for each prompt. @param prompts number of prompts.
 * @throws ApiError for options that exclude each other, and for too many answers.
 */
export function choiceCounts(
  { n = 1, best_of: bestOf = n, stream }: CommonRequest,
  prompts = 1,
): ChoiceCounts {
  if (prompts * Math.max(n, bestOf) > MAX_ANSWERS) {
    const param = bestOf > n ? 'best_of' : 'n';
    const each = Math.max(n, bestOf);
    throw new ApiError(
      400,
      `'${param}' is ${each} for each of ${prompts} prompts, which makes ${prompts * each} answers; one request has ${MAX_ANSWERS} at most.`,
      { param, code: 'invalid_value' },
    );
  }
  if (bestOf < n) {
    throw new ApiError(400, `'best_of' is ${bestOf}, but 'n' asks for ${n} answers.`, { param: 'best_of' });
  }
  if (bestOf > n && stream) {
    throw new ApiError(
      400,
      "'best_of' cannot be streamed: which answers are the best is known at their end.",
      {
        param: 'best_of',
      },
    );
  }
  return { n, bestOf };
}

/** Beam search of the request, with as many beams as candidates; undefined: none. */
function beamsOf(request: CommonRequest): TokenBeams | undefined {
  const { use_beam_search, length_penalty: lengthPenalty, early_stopping: earlyStopping, stream } = request;
  if (!use_beam_search) {
    const param = lengthPenalty !== undefined ? 'length_penalty' : 'early_stopping';
    if ((lengthPenalty ?? 1) === 1 && !earlyStopping) return undefined;
    throw new ApiError(400, `'${param}' needs 'use_beam_search' to be true.`, { param });
  }
  if (stream) {
    const why = 'a beam may change until the search has ended';
    throw new ApiError(400, `'use_beam_search' cannot be streamed: ${why}.`, { param: 'use_beam_search' });
  }
  const width = choiceCounts(request).bestOf;
  if (width === 1) {
    throw new ApiError(
      400,
      "'use_beam_search' needs 'n' or 'best_of' to be at least 2, the number of beams.",
      {
        param: 'best_of',
      },
    );
  }
  return {
    width,
    ...(lengthPenalty === undefined ? {} : { lengthPenalty }),
    ...(earlyStopping === undefined ? {} : { earlyStopping }),
  };
}

/** Fields whose texts have been encoded. */
export type EncodedFields = Pick<TextRequest, 'badWords' | 'logitBias' | 'dryBreakers'>;

/** Encodes the texts in fields of a request, those of the prompt apart. */
export async function encodedFields(request: CommonRequest, model: ServedGenerator): Promise<EncodedFields> {
  const { codec, vocabSize } = model;
  const { bad_words: words, logit_bias: bias, dry_sequence_breakers: breakers } = request;
  checkCounts(request, model);
  return {
    badWords: words && (await badWordTokens(codec, words)),
    logitBias: bias && (await biasByToken(codec, bias)),
    dryBreakers: request.dry_multiplier ? await dryBreakerTokens(codec, vocabSize, breakers) : undefined,
  };
}

/** @throws ApiError for lists of more tokens than there are. */
function checkCounts(request: CommonRequest, model: ServedGenerator): void {
  const allowed = request.allowed_token_ids?.length ?? 0;
  if (allowed > model.vocabSize) {
    throw new ApiError(
      400,
      `'allowed_token_ids' has ${allowed} ids, but the vocabulary has ${model.vocabSize} tokens.`,
      { param: 'allowed_token_ids', code: 'invalid_value' },
    );
  }
  const biases = request.logit_bias?.byToken.size ?? 0;
  if (biases > model.vocabSize) {
    throw new ApiError(
      400,
      `'logit_bias' has ${biases} biases, but the vocabulary has ${model.vocabSize} tokens.`,
      { param: 'logit_bias', code: 'invalid_value' },
    );
  }
}

/** Blocks that no later request can find are the first to go, and are written to no disk. */
const KEPT_FOR_NOBODY: Retention = { ranges: [{ start: 0, priority: 0 }], generated: { priority: 0 } };

/** Cache salt: a unique one for a request that shares no prompt. */
function requestSalt({ cache_prompt: shares = true, cache_salt: salt }: CommonRequest): bigint | undefined {
  if (!shares) return saltOf(randomUUID());
  return salt === undefined ? undefined : saltOf(salt);
}

/**
 * The last tokens of a prompt that is longer than the request wants.
 * @param maxTokens most tokens of the answer
 */
export function truncatedPrompt(
  tokens: PromptTokens,
  { truncate_prompt_tokens: most }: Pick<CommonRequest, 'truncate_prompt_tokens'>,
  model: ServedGenerator,
  maxTokens: number,
): PromptTokens {
  if (most === undefined) return tokens;
  const room = Math.max(1, Math.min(model.maxInputLen, model.maxSeqLen - maxTokens));
  const kept = most === -1 ? room : most;
  return tokens.length <= kept ? tokens : tokens.slice(tokens.length - kept);
}

/** 64-bit salt of a text: a second text with the same salt is not found by chance. 0 would mean no salt. */
function saltOf(text: string): bigint {
  return createHash('sha256').update(text).digest().readBigUInt64LE() || 1n;
}

/**
 * Most tokens of a chat answer. Without a limit in the request: what the context leaves, but no more than the server's
 * default, so that one request cannot reserve the whole cache.
 */
export function chatMaxTokens(
  model: ServedGenerator,
  asked: number | undefined,
  promptTokens: number,
): number {
  return asked ?? Math.max(1, Math.min(model.maxSeqLen - promptTokens, model.defaultMaxTokens));
}

/**
 * Number of log-probs requested in addition to each token's own; -1 asks for the whole vocabulary.
 * @throws ApiError where it exceeds the server's limit.
 */
export function topLogProbs(
  model: ServedGenerator,
  param: string,
  asked: number | undefined,
): number | undefined {
  if (asked === undefined) return undefined;
  const count = asked === -1 ? model.vocabSize : asked;
  const most = Math.min(model.maxLogProbs ?? DEFAULT_MAX_LOG_PROBS, model.vocabSize);
  if (count <= most) return count;
  throw new ApiError(
    400,
    `'${param}' is ${asked}, but this server gives at most ${most} log-probs of each token (--max-logprobs).`,
    { param, code: 'invalid_value' },
  );
}

/**
 * Number of log-probs requested in addition to each prompt token's own.
 * @throws ApiError where they cannot be had.
 */
export function promptLogProbsAsked(model: ServedGenerator, request: CommonRequest): number | undefined {
  const count = topLogProbs(model, 'prompt_logprobs', request.prompt_logprobs);
  if (count !== undefined && request.stream) {
    throw new ApiError(400, "'prompt_logprobs' cannot be streamed: they are of the prompt, as a whole.", {
      param: 'prompt_logprobs',
    });
  }
  return count;
}
