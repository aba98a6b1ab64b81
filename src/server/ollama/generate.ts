import type { ChatMessage } from '../../../models/chat-template.js';
import { type ChatPlan, planChat } from '../../generation/chat-plan.js';
import { infillPrompts } from '../../generation/infill.js';
import { checkTextLength, promptLimit } from '../../generation/text-length.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { seenChat } from '../answering/seen-chat.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { notCapable } from './errors.js';
import { answerText, guideOfFormat, reasoningOf } from './generation.js';
import { withImages } from './messages.js';
import { renderTemplate } from './prompt-template.js';
import type { GenerateBody } from './schemas.js';
import type { OllamaServices } from './services.js';

/** Answers POST /api/generate, whose body its schema has validated. */
export async function generate(
  context: OllamaServices,
  request: GenerateBody,
  exchange: Exchange,
): Promise<Response> {
  const { prompt = '', suffix = '', images = [] } = request;
  checkCombinations(request);
  return answerText(
    context,
    request,
    {
      isEmpty: prompt === '' && suffix === '' && images.length === 0,
      place: 'response',
      what: 'generate',
      // Pictures are no tokens that a later request could bring.
      withContext: request.raw !== true && images.length === 0,
      plan: (model) => planOf(context, request, model, exchange),
    },
    exchange,
  );
}

function checkCombinations({ raw, template, system, context, suffix, images = [] }: GenerateBody): void {
  if (images.length > 0) checkImages({ raw, template, suffix, context });
  const others = { template, system, context };
  const [other] = Object.entries(others).find(([, value]) => value !== undefined && value.length > 0) ?? [];
  const sole = raw ? 'raw' : (suffix ?? '') !== '' ? 'suffix' : null;
  if (sole === null || other === undefined) return;
  throw new ApiError(
    400,
    `'${sole}' and '${other}' exclude each other: with '${sole}' there is no template.`,
    {
      param: other,
      code: 'invalid_value',
    },
  );
}

/** Pictures have a place in chat templates alone. @throws ApiError */
function checkImages(others: Pick<GenerateBody, 'raw' | 'template' | 'suffix' | 'context'>): void {
  const isGiven = (value: unknown) =>
    value === true || ((typeof value === 'string' || Array.isArray(value)) && value.length > 0);
  const [param] = Object.entries(others).find(([, value]) => isGiven(value)) ?? [];
  if (param === undefined) return;
  const message = `'images' and '${param}' exclude each other: pictures have a place in the model's chat template alone.`;
  throw new ApiError(400, message, { param: 'images', code: 'invalid_value' });
}

async function planOf(
  services: OllamaServices,
  request: GenerateBody,
  model: ServedGenerator,
  exchange: Exchange,
): Promise<ChatPlan> {
  const { model: asked, prompt = '', suffix = '', system = '', template, raw, context = [] } = request;
  const guide = await guideOfFormat(request.format, model);
  checkTokens(context, model);
  const { images = [] } = request;
  if (images.length > 0 && model.codec.templateSource === null) throw notCapable(asked, 'vision');
  const hasTemplate = template !== undefined && template !== '';
  if (raw || suffix !== '' || hasTemplate || model.codec.templateSource === null) {
    const values = { System: system, Prompt: prompt, Suffix: suffix };
    const text = hasTemplate ? renderTemplate(template, values, (units) => checkUnits(units, model)) : prompt;
    const tokens =
      suffix !== '' && !hasTemplate
        ? await infilled(model, asked, prompt, suffix)
        : await encoded(model, text);
    const promptTokens = await behind(context, tokens, model);
    const whole = {
      warnings: [],
      shownTokens: [],
      reasoning: null,
      harmony: null,
      callIds: 'openai',
      createParser: null,
      unseen: null,
    } as const;
    return { ...whole, promptTokens, guide };
  }
  const messages: ChatMessage[] = [
    { role: 'user', content: withImages(prompt, { role: 'user', images }, 'images') },
  ];
  if (system !== '') messages.unshift({ role: 'system', content: system });
  const plan = await planChat(model, {
    ...(await seenChat(services, model, messages, exchange)),
    guide,
    addGenerationPrompt: true,
    ...reasoningOf(request.think, model, asked),
  });
  return { ...plan, promptTokens: await behind(context, plan.promptTokens, model) };
}

/** A text that is the caller's own: special tokens in it are tokens. @throws ContextLengthError for one that is too long */
async function encoded(model: ServedGenerator, text: string): Promise<PromptTokens> {
  checkUnits(text.length, model);
  return model.codec.encodeText(text);
}

/** @throws ContextLengthError for a prompt that is too long whatever its tokens are */
function checkUnits(units: number, model: ServedGenerator): void {
  checkTextLength(units, promptLimit(model), 'prompt');
}

async function infilled(
  model: ServedGenerator,
  asked: string,
  prompt: string,
  suffix: string,
): Promise<PromptTokens> {
  checkUnits(prompt.length + suffix.length, model);
  const [tokens] = (await infillPrompts(model.codec, [prompt], suffix)) ?? [];
  if (tokens === undefined) throw notCapable(asked, 'insert');
  return tokens;
}

/**
 * The prompt appended to an earlier conversation. Tokens that a model wants in front of a text are there
 * already.
 */
async function behind(
  context: readonly number[],
  prompt: PromptTokens,
  { codec }: ServedGenerator,
): Promise<PromptTokens> {
  if (context.length === 0) return prompt;
  const before = await codec.encodeText('');
  const isThere = before.length > 0 && Array.from(before).every((token, i) => prompt[i] === token);
  return [...context, ...(isThere ? prompt.slice(before.length) : prompt)];
}

/** @throws ApiError for a token of a context that no answer of the model has */
function checkTokens(context: readonly number[], { vocabSize, maxSeqLen }: ServedGenerator): void {
  const outside = context.findIndex((token) => token >= vocabSize);
  if (outside >= 0) {
    const param = `context[${outside}]`;
    const message = `'${param}' is ${context[outside]}, but the vocabulary has the ids 0 to ${vocabSize - 1}.`;
    throw new ApiError(400, message, { param, code: 'invalid_value' });
  }
  if (context.length <= maxSeqLen) return;
  throw new ApiError(
    400,
    `'context' has ${context.length} tokens; this model's context holds ${maxSeqLen}.`,
    {
      param: 'context',
      code: 'context_length_exceeded',
    },
  );
}
