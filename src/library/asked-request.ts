import { InvalidRequestError } from '../errors/request-errors.js';
import { badWordTokens } from '../generation/bad-words.js';
import { chatPrompt, hasParts, planOptions } from '../generation/chat-options.js';
import { stopParser } from '../generation/chat-plan.js';
import { dryBreakerTokens } from '../generation/dry-breakers.js';
import { checkGuideEnds, guideOf, leftOutWarning } from '../generation/guided.js';
import { infillPrompt } from '../generation/infill.js';
import { type AskedRequest, seenRequest } from '../generation/pictures/seen-request.js';
import type { TextRequest } from '../generation/text-generation.js';
import { MAX_UNITS_PER_TOKEN } from '../generation/text-length.js';
import type { PromptTokens, TextModel } from '../generation/text-model.js';
import type { AnswerPlan, GenerateOptions, InfillOptions } from './answers.js';
import { withPictures } from './given-pictures.js';

/** Most tokens of an answer whose request names no limit. */
export const DEFAULT_MAX_TOKENS = 1024;

/** The engine's request, and how its answer is read; null: as it is. */
export async function askedRequest(
  model: TextModel,
  given: GenerateOptions,
): Promise<{ request: TextRequest; plan: AnswerPlan | null }> {
  const { request, plan } = await plannedRequest(model, given);
  return { request: await seenRequest(model, request), plan };
}

/** The same before anything of its pictures is decoded. */
export async function plannedRequest(
  model: TextModel,
  given: GenerateOptions,
): Promise<{ request: AskedRequest; plan: AnswerPlan | null }> {
  checkOnePrompt(given);
  const messages = given.messages && (await withPictures(given.messages));
  const options = { ...given, ...(messages && { messages }) };
  if (!hasParts(options, model)) {
    if (messages === undefined) {
      const warnings: string[] = [];
      const warn = (leftOut: readonly string[]) => warnings.push(leftOutWarning(leftOut));
      const request = await textRequest(model, options, await promptTokensOf(model, options), warn);
      const plan = { createParser: null, callIds: 'openai', warnings } as const;
      return { request, plan: warnings.length > 0 ? plan : null };
    }
    const { promptTokens, reasoning, unseen } = await chatPrompt(model, messages, options);
    const request = { ...(await textRequest(model, options, promptTokens)), unseen };
    // Reasoning is part of the text, and no part of the answer that a stop string ends.
    const createParser = stopParser(reasoning);
    return { request: { ...request, createParser }, plan: null };
  }
  const { plan, fields } = await planOptions(model, options);
  const { guided: _, ...others } = options;
  const request = await textRequest(model, others, fields.promptTokens);
  const guideParam = options.guided === undefined ? 'tools' : 'guided';
  return { request: { ...request, ...fields, guideParam }, plan };
}

async function textRequest(
  model: TextModel,
  options: GenerateOptions,
  promptTokens: PromptTokens,
  warn?: (leftOut: readonly string[]) => void,
): Promise<TextRequest> {
  const { prompt, messages, infill, stop, maxTokens, badWords, dryBreakers, guided, ...most } = options;
  const { tools: _t, toolChoice: _c, parallelToolCalls: _p, reasoning: _r, adapter: _a, ...rest } = most;
  if (guided !== undefined) checkGuideEnds(options.ignoreEos ?? false, 'guided');
  const room = Math.max(1, model.maxSeqLen - promptTokens.length);
  return {
    ...rest,
    promptTokens,
    promptParam: ONE_OF.find((name) => options[name] !== undefined)!,
    maxTokens: maxTokens ?? Math.min(room, model.sampling?.maxTokens ?? DEFAULT_MAX_TOKENS),
    ...(guided === undefined ? {} : { guide: await guideOf(guided, 'guided', model.codec, warn) }),
    stop: typeof stop === 'string' ? [stop] : stop,
    badWords: badWords && (await badWordTokens(model.codec, badWords)),
    ...(options.dryMultiplier
      ? { dryBreakers: await dryBreakerTokens(model.codec, model.vocabSize, dryBreakers) }
      : {}),
  };
}

/** Tokens of a prompt without messages. */
async function promptTokensOf(
  model: TextModel,
  { prompt, promptTokens = [], infill, maxTokens }: GenerateOptions,
): Promise<PromptTokens> {
  if (infill !== undefined) return infillTokens(model, infill, maxTokens);
  return prompt === undefined ? promptTokens : model.codec.encodeText(prompt);
}

/** Share of the context that is left for what fills a gap, where its request names no limit. */
const INFILL_SHARE = 1 / 4;

/** The prompt of a gap. What is too long loses what is farthest from it. */
async function infillTokens(
  { codec, maxInputLen, maxSeqLen }: TextModel,
  { prefix, suffix, prompt = '', extra = [] }: InfillOptions,
  maxTokens = Math.min(DEFAULT_MAX_TOKENS, Math.floor(maxSeqLen * INFILL_SHARE)),
): Promise<PromptTokens> {
  const room = Math.min(maxInputLen, maxSeqLen - maxTokens);
  const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  const found = await infillPrompt(codec, { prefix, suffix, prompt, extra }, { room, unitsPerToken });
  if (found !== null) return found.tokens;
  throw new InvalidRequestError(
    'This model fills no gaps: its vocabulary has no tokens for text to be filled in between.',
    'infill',
    'model_not_supported',
  );
}

/** What an answer may continue. */
const ONE_OF = ['prompt', 'messages', 'infill', 'promptTokens'] as const;

function checkOnePrompt(given: GenerateOptions): void {
  if (ONE_OF.filter((name) => given[name] !== undefined).length === 1) return;
  throw new InvalidRequestError('Give one of prompt, messages, infill and promptTokens.', 'prompt');
}
