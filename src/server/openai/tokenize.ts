import { jsonUnits } from '../../../models/json-units.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { jsonAnswer } from '../json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../json-parts.js';
import { toldTokensMemory } from '../memory-estimates.js';
import { checkFinalMessage, templateMessage } from './chat-messages.js';
import { ApiError } from './errors.js';
import type { Exchange } from './respond.js';
import { findGenerator, type RouteContext, templateOf } from './route-context.js';
import type {
  ApplyTemplateRequest,
  DetokenizeRequest,
  RenderPromptRequest,
  TokenizeRequest,
} from './schemas/tokenize.js';

/** Answers POST /tokenize: the tokens of a text, or of the prompt made of a conversation. */
export async function tokenize(
  context: RouteContext,
  request: TokenizeRequest,
  { terms }: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const found = await toldTokens(model, request, templateOf(context, request), terms);
  const { codec, maxSeqLen } = model;
  const tokenAt = (index: number) => codec.tokenEntry(found[index]!) ?? '';
  return jsonAnswer(
    new JsonObject({
      count: found.length,
      max_model_len: maxSeqLen,
      tokens: new JsonNumbers(found),
      token_strs: request.return_token_strs ? new JsonList(found.length, tokenAt) : null,
    }),
  );
}

/**
 * Answers POST /detokenize: the text of tokens, special ones included. @throws ApiError for an id outside the
 * vocabulary.
 */
export function detokenize(context: RouteContext, request: DetokenizeRequest): Response {
  const { codec, vocabSize } = findGenerator(context, request.model);
  const outside = request.tokens.findIndex((token) => token >= vocabSize);
  if (outside >= 0) {
    const token = request.tokens[outside];
    throw new ApiError(
      400,
      `'tokens[${outside}]' is ${token}, but the vocabulary has the ids 0 to ${vocabSize - 1}.`,
      { param: `tokens[${outside}]`, code: 'invalid_value' },
    );
  }
  return textAnswer(codec, request.tokens);
}

/** Answers POST /apply-template: the prompt of a conversation as text, special tokens included. */
export async function applyTemplate(
  context: RouteContext,
  request: ApplyTemplateRequest,
  { terms }: Exchange,
): Promise<Response> {
  const { model, found } = await conversationTokens(context, request, terms);
  return textAnswer(model.codec, found);
}

function textAnswer(codec: ServedGenerator['codec'], tokens: PromptTokens): Response {
  const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
  const text = detokenizer.push(tokens);
  return jsonAnswer(new JsonObject({ prompt: text + detokenizer.flush() }));
}

/** Answers POST /v1/completions/render: what the model would get of a prompt, in vLLM's list with an entry for each prompt. */
export async function renderPrompt(
  context: RouteContext,
  request: RenderPromptRequest,
  { terms }: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const found = await toldTokens(model, request as TokenizeRequest, undefined, terms);
  return jsonAnswer(new JsonList(1, () => rendered(model, found)));
}

/** Answers POST /v1/chat/completions/render: what the model would get of a conversation. */
export async function renderConversation(
  context: RouteContext,
  request: ApplyTemplateRequest,
  { terms }: Exchange,
): Promise<Response> {
  const { model, found } = await conversationTokens(context, request, terms);
  return jsonAnswer(rendered(model, found));
}

function rendered({ id }: ServedGenerator, found: PromptTokens): JsonObject {
  return new JsonObject({ model: id, token_ids: new JsonNumbers(found) });
}

async function conversationTokens(
  context: RouteContext,
  request: ApplyTemplateRequest,
  terms: Exchange['terms'],
): Promise<{ model: ServedGenerator; found: PromptTokens }> {
  const model = findGenerator(context, request.model);
  const template = templateOf(context, request);
  const found = await toldTokens(
    model,
    { ...request, prompt: undefined } as TokenizeRequest,
    template,
    terms,
  );
  return { model, found };
}

/** Tokens of an answer that tells of them all, whose memory is counted. */
async function toldTokens(
  model: ServedGenerator,
  request: TokenizeRequest,
  template: string | undefined,
  { memory }: Exchange['terms'],
): Promise<PromptTokens> {
  const found = await tokensOf(model, request, template);
  memory.addAnswer(toldTokensMemory(found.length));
  return found;
}

/** Fields with a meaning only for conversations. */
const CHAT_FIELDS = [
  'add_generation_prompt',
  'continue_final_message',
  'chat_template',
  'chat_template_kwargs',
  'tools',
] as const satisfies readonly (keyof TokenizeRequest)[];

/** Most UTF-16 units to tokenize: more than any context holds. Each may become a token of the answer. */
const MAX_UNITS = 2 ** 18;

/** Most UTF-16 units of a conversation, of which each value counts 32. */
const MAX_MESSAGE_UNITS = 2 ** 19;

function checkUnits(units: number, param: string, most = MAX_UNITS): void {
  if (units <= most) return;
  const length = Number.isFinite(units) ? units : `more than ${most}`;
  const message = `'${param}' is ${length} characters long, but at most ${most} are tokenized at once.`;
  throw new ApiError(400, message, { param, code: 'invalid_value' });
}

async function tokensOf(
  model: ServedGenerator,
  request: TokenizeRequest,
  template: string | undefined,
): Promise<PromptTokens> {
  const { prompt, messages, add_special_tokens: addSpecialTokens, tools } = request;
  if (prompt !== undefined && messages !== undefined) {
    throw new ApiError(400, "'prompt' and 'messages' exclude each other.", { param: 'prompt' });
  }
  if (prompt !== undefined) {
    const field = CHAT_FIELDS.find((name) => request[name] !== undefined);
    if (field !== undefined) throw new ApiError(400, `'${field}' needs 'messages'.`, { param: field });
    checkUnits(prompt.length, 'prompt');
    return addSpecialTokens === false ? model.codec.encodePiece(prompt) : model.codec.encodeText(prompt);
  }
  if (messages === undefined) {
    throw new ApiError(400, "One of 'prompt' and 'messages' is required.", {
      param: 'prompt',
      code: 'missing_required_parameter',
    });
  }
  checkFinalMessage(request, messages);
  checkUnits(jsonUnits({ messages, tools }, MAX_MESSAGE_UNITS), 'messages', MAX_MESSAGE_UNITS);
  return model.codec.encodeChat(messages.map(templateMessage), {
    addGenerationPrompt: request.add_generation_prompt ?? !request.continue_final_message,
    continueFinalMessage: request.continue_final_message ?? false,
    addSpecialTokens: addSpecialTokens ?? false,
    template,
    variables: request.chat_template_kwargs,
    ...(tools && { tools }),
  });
}
