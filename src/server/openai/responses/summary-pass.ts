import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatAsk, type ChatPlan, planChat } from '../../../generation/chat-plan.js';
import type { SeenMessages } from '../../../generation/pictures/see-messages.js';
import { maxSummaryTokens, NO_SUMMARY, summaryPrompt } from '../../../generation/summary-texts.js';
import type { TextPiece } from '../../../generation/text-generation.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { ChatMessageReader } from '../../answering/chat-message.js';
import { planWithin } from '../../answering/plan-within.js';
import { plannedRun } from '../../answering/planned-run.js';
import type { CommonRequest } from '../../answering/schemas/common.js';
import type { AnsweringServices } from '../../answering/services.js';
import type { EnginePass } from '../../answering/several-passes.js';
import { compactionMemory } from '../../web/memory/memory-estimates.js';
import type { LiveRequest } from '../../web/request-registry.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { maxRetainedTokens } from './retained-items.js';

const SUMMARY_PROMPT = summaryPrompt("the user's own messages and your summary");

/** What is asked of a model that summarises a conversation. */
export interface SummaryAsk {
  /** The request's fields for the engine; those for the form and the sampling of an answer have no effect. */
  engine: Pick<CommonRequest, 'priority' | 'cache_salt' | 'time_limit_ms'>;
  /** The chat as the request would have it answered. */
  ask: Omit<ChatAsk, 'messages'>;
  seen: SeenMessages;
}

/**
 * Asks the model for a summary of a conversation, by a message after it. The prompt begins as those of its
 * answers do, tools included, so that the cache has most of it. Of a conversation that does not fit, the
 * oldest messages are left out. The most probable words are chosen: a conversation always gets the same
 * summary.
 * @throws as planChat and ChoiceRun.
 */
export async function summaryPass(
  context: Pick<AnsweringServices, 'observe' | 'recentPrompts'>,
  model: ServedGenerator,
  { engine, ask, seen }: SummaryAsk,
  terms: RequestTerms,
  live: LiveRequest,
): Promise<EnginePass> {
  const { maxSeqLen } = model;
  const most = maxSummaryTokens(maxSeqLen);
  const asked: ChatMessage[] = [...seen.messages, { role: 'user', content: SUMMARY_PROMPT }];
  const summaryAsk = { ...ask, toolChoice: { mode: 'none' }, showsTools: true, guide: undefined } as const;
  const plan = await planWithin(
    model,
    asked,
    (kept) => planChat(model, { ...summaryAsk, messages: kept, pictures: seen.picturesOf(kept) }),
    most,
  );
  const { priority, cache_salt, time_limit_ms } = engine;
  const request = { priority, cache_salt, time_limit_ms, temperature: 0 } as CommonRequest;
  terms.memory.addAnswer(compactionMemory(maxRetainedTokens(model) + most));
  const maxTokens = Math.min(most, maxSeqLen - plan.promptTokens.length);
  const run = await plannedRun(
    context,
    model,
    { request, plan, promptParam: 'input', maxTokens },
    terms,
    live,
  );
  return { plan, run };
}

/** Reads a summary as it comes. */
export class SummaryReader {
  readonly #reader: ChatMessageReader;
  #text = '';

  constructor(plan: ChatPlan, model: Pick<ServedGenerator, 'codec'>) {
    this.#reader = new ChatMessageReader(plan, model.codec);
  }

  get text(): string {
    return this.#text.trim() || NO_SUMMARY;
  }

  get reasoningTokens(): number {
    return this.#reader.reasoningTokens;
  }

  push({ text, tokens, finishReason }: TextPiece): void {
    for (const part of this.#reader.read(text, tokens, finishReason !== null))
      if (part.type === 'content') this.#text += part.text;
  }
}
