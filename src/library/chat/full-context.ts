import type { ChatMessage } from '../../../models/chat-message.js';
import { ContextLengthError, contextWords } from '../../errors/request-errors.js';
import {
  maxSummaryTokens,
  NO_SUMMARY,
  summaryMessage,
  summaryPrompt,
} from '../../generation/summary-texts.js';
import { tooLong, truncated } from '../../generation/truncation.js';
import type { GenerateOptions } from '../answers.js';
import type { AnsweringModel, PlannedAnswer } from './answering-model.js';
import type { WhenFull } from './chat-types.js';

/** A conversation that leaves room for its answer. */
export interface FittedChat {
  messages: readonly ChatMessage[];
  planned: PlannedAnswer;
  /** Number of messages that left it. */
  leftOut: number;
  /** Their replacement; null: none. */
  summary: string | null;
}

/** Of the room for a prompt, what stays when turns are dropped: several turns then begin as before, and find that in the cache. */
const KEPT_SHARE = 3 / 4;
/** The same with a summary. */
const KEPT_WITH_SUMMARY = 1 / 2;

const isUser = ({ role }: ChatMessage) => role === 'user';
const isSystem = ({ role }: ChatMessage) => role === 'system' || role === 'developer';

/**
 * Plans the answer to a conversation, which is made to fit where it is too long. The last turn always stays. At most as many prompts are
 * made as the number of messages has bits, and a few more; of `summarise` one more answer.
 * @throws ContextLengthError where it cannot be made to fit, or may not
 */
export async function fittedChat(
  model: AnsweringModel,
  messages: readonly ChatMessage[],
  options: GenerateOptions,
  whenFull: WhenFull,
): Promise<FittedChat> {
  const room = model.room(options);
  const ask = (some: readonly ChatMessage[]) => model.plan({ ...options, messages: some });
  const within = (share: number) => async (some: readonly ChatMessage[]) =>
    lengthOf(await ask(some).catch(tooLong)) <= room * share;
  const whole = await ask(messages).catch(tooLong);
  if (whole !== null && lengthOf(whole) <= room)
    return { messages, planned: whole, leftOut: 0, summary: null };
  if (whenFull === 'refuse') return refuse(model, whole ?? (await ask(messages)), room);
  const isSummarised = whenFull === 'summarise';
  const kept = await truncated(messages, within(isSummarised ? KEPT_WITH_SUMMARY : KEPT_SHARE), isUser);
  const leftOut = messages.length - kept.length;
  const summary =
    isSummarised && leftOut > 0 ? await summaryOf(model, without(messages, kept), options, room) : null;
  const fitting = summary === null ? kept : withSummary(kept, summary);
  const planned = await ask(fitting);
  if (lengthOf(planned) > room) return refuse(model, planned, room);
  return { messages: fitting, planned, leftOut, summary };
}

const lengthOf = (planned: PlannedAnswer | null) =>
  planned?.request.promptTokens.length ?? Number.POSITIVE_INFINITY;

/** The messages that left, after those of the system. */
function without(messages: readonly ChatMessage[], kept: readonly ChatMessage[]): ChatMessage[] {
  const stays = new Set(kept);
  return messages.filter((message) => isSystem(message) || !stays.has(message));
}

/** The summary as a message after the system's. */
function withSummary(kept: readonly ChatMessage[], summary: string): ChatMessage[] {
  const at = kept.findIndex((message) => !isSystem(message));
  return kept.toSpliced(at, 0, { role: 'user', content: summaryMessage(summary) });
}

/** Has the model summarise messages. What it cannot read of them at once, the oldest, it does not see. */
async function summaryOf(
  model: AnsweringModel,
  messages: readonly ChatMessage[],
  options: GenerateOptions,
  room: number,
): Promise<string> {
  const { adapter, templateVariables, priority, queueKey, queueWeight, cacheSalt, clientId, signal } =
    options;
  const maxTokens = Math.max(1, Math.min(maxSummaryTokens(model.maxSeqLen), Math.floor(room / 4)));
  const own = { adapter, templateVariables, priority, queueKey, queueWeight, cacheSalt, clientId, signal };
  const asked = { ...own, tools: [], temperature: 0, maxTokens };
  const ask = (some: readonly ChatMessage[]) => model.plan({ ...asked, messages: some });
  const most = model.room(asked);
  const prompt = { role: 'user', content: summaryPrompt('your summary and what was said last') };
  const fits = async (some: readonly ChatMessage[]) => lengthOf(await ask(some).catch(tooLong)) <= most;
  const fitting = await truncated([...messages, prompt], fits, isUser);
  let text = '';
  for await (const piece of model.pieces(await ask(fitting))) text += piece.text;
  return text.trim() || NO_SUMMARY;
}

function refuse(model: AnsweringModel, planned: PlannedAnswer, room: number): never {
  const words = `the conversation has ${lengthOf(planned)} tokens, of ${room} at most besides the answer.`;
  throw new ContextLengthError(`${contextWords(model.maxSeqLen)}${words}`, 'messages');
}
