import { jsonUnits } from '../../../models/json-units.js';
import { withoutFiles } from '../../generation/messages.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { findGenerator } from '../answering/find-model.js';
import type { AnsweringServices } from '../answering/services.js';
import { truncatedPrompt } from '../answering/text-request.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { toldTokensMemory } from '../web/memory/memory-estimates.js';
import { toldChat } from './chat-ask.js';
import { completionLimit, completionPrompts, inCompletionWords } from './completions.js';
import type { ChatPromptRequest, ChatRequest } from './schemas/chat.js';
import type { CompletionRequest } from './schemas/completions.js';
import type { DetokenizeRequest, TokenizeRequest } from './schemas/tokenize.js';

/** Answers POST /tokenize: the tokens of a text, or of the prompt made of a conversation. */
export async function tokenize(
  context: AnsweringServices,
  request: TokenizeRequest,
  exchange: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const found = await tokensOf(context, model, request, exchange);
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
export function detokenize(context: AnsweringServices, request: DetokenizeRequest): Response {
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
  context: AnsweringServices,
  request: ChatRequest,
  exchange: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  return textAnswer(model.codec, await conversationTokens(context, model, request, exchange));
}

function textAnswer(codec: ServedGenerator['codec'], tokens: PromptTokens): Response {
  const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
  const text = detokenizer.push(tokens);
  return jsonAnswer(new JsonObject({ prompt: text + detokenizer.flush() }));
}

/** Answers POST /v1/completions/render: what the model would get, in vLLM's list with an entry for each prompt. */
export async function renderPrompt(
  context: AnsweringServices,
  request: CompletionRequest,
  { terms }: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const units = request.prompt.reduce((sum, { length }) => sum + length, 0);
  checkUnits(units, 'prompt');
  const prompts = await inCompletionWords(() => completionPrompts(model, request, { maxUnits: MAX_UNITS }));
  for (const { length } of prompts) terms.memory.addAnswer(toldTokensMemory(length));
  return jsonAnswer(JsonList.of(prompts, (found) => rendered(model, found)));
}

/** Answers POST /v1/chat/completions/render: what the model would get of a conversation. */
export async function renderConversation(
  context: AnsweringServices,
  request: ChatRequest,
  exchange: Exchange,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  return jsonAnswer(rendered(model, await conversationTokens(context, model, request, exchange)));
}

function rendered({ id }: ServedGenerator, found: PromptTokens): JsonObject {
  return new JsonObject({ model: id, token_ids: new JsonNumbers(found) });
}

/** Fields with a meaning only for conversations. */
const CHAT_FIELDS = [
  'add_generation_prompt',
  'continue_final_message',
  'chat_template',
  'chat_template_kwargs',
  'documents',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'reasoning_effort',
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
  context: AnsweringServices,
  model: ServedGenerator,
  request: TokenizeRequest,
  exchange: Exchange,
): Promise<PromptTokens> {
  const { prompt, messages, add_special_tokens: addSpecialTokens } = request;
  if (prompt !== undefined && messages !== undefined) {
    throw new ApiError(400, "'prompt' and 'messages' exclude each other.", { param: 'prompt' });
  }
  if (messages !== undefined) return conversationTokens(context, model, { ...request, messages }, exchange);
  if (prompt === undefined) {
    throw new ApiError(400, "One of 'prompt' and 'messages' is required.", {
      param: 'prompt',
      code: 'missing_required_parameter',
    });
  }
  const field = CHAT_FIELDS.find((name) => request[name] !== undefined);
  if (field !== undefined) throw new ApiError(400, `'${field}' needs 'messages'.`, { param: field });
  checkUnits(prompt.length, 'prompt');
  const { codec } = model;
  const found = await (addSpecialTokens === false ? codec.encodePiece(prompt) : codec.encodeText(prompt));
  exchange.terms.memory.addAnswer(toldTokensMemory(found.length));
  return truncatedPrompt(found, request, model, completionLimit(request));
}

/** Tokens of a conversation for an answer that lists them all, whose memory is counted. */
async function conversationTokens(
  context: AnsweringServices,
  model: ServedGenerator,
  request: ChatPromptRequest,
  exchange: Exchange,
): Promise<PromptTokens> {
  const { messages, tools, functions, documents } = request;
  const told = { messages: messages.map(withoutFiles), tools: tools ?? functions, documents };
  const units = jsonUnits(told, MAX_MESSAGE_UNITS);
  checkUnits(units, 'messages', MAX_MESSAGE_UNITS);
  const found = await toldChat(context, model, request, exchange);
  exchange.terms.memory.addAnswer(toldTokensMemory(found.length));
  return found;
}
