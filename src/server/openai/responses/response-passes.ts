import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatAsk, type ChatPlan, planChat } from '../../../generation/chat-plan.js';
import { type SeenMessages, seenWith } from '../../../generation/pictures/see-messages.js';
import { toldPrompt } from '../../../generation/prompt/chat-prompt.js';
import { askedBudget } from '../../answering/asked-budget.js';
import type { ChoiceRun } from '../../answering/choice-run.js';
import { guideOfRequest } from '../../answering/guides.js';
import { planWithin } from '../../answering/plan-within.js';
import { plannedRun } from '../../answering/planned-run.js';
import type { EnginePass } from '../../answering/several-passes.js';
import { chatMaxTokens } from '../../answering/text-request.js';
import { withTimeLeft } from '../../answering/time-left.js';
import { choiceOfPass } from '../../answering/tool-rounds.js';
import { keptEventsMemory } from '../../web/memory/memory-estimates.js';
import type { LiveRequest } from '../../web/request-registry.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { warnOfAll } from '../../web/warnings.js';
import { LOG_PROBS, type ResponseRequest } from '../schemas/responses.js';
import type { Asked } from './asked-response.js';
import { type Compaction, compactionThreshold, summaryOnly, wholeCompaction } from './compaction.js';
import { chatOf } from './conversation.js';
import { rethrowPatternFault } from './custom-tools.js';
import { askOf, commonOf } from './response-ask.js';
import type { ResponseMaking } from './response-making.js';
import type { KeptItem } from './response-store.js';
import type { ServedPasses } from './served-answer.js';
import { summaryPass } from './summary-pass.js';

/** A response whose pictures have been looked at. */
interface Looked extends Asked {
  /** The messages of all items of its conversation. */
  seen: SeenMessages;
}

/** Terms of a pass, which ends when the time of all passes is over. */
export interface Pass {
  terms: RequestTerms;
  live: LiveRequest;
  sinceMs: number;
}

/** The passes of the engine that make a response. */
export class ResponsePasses implements ServedPasses {
  readonly #asked: Looked;
  readonly #making: ResponseMaking;
  readonly #pass: Pass;
  readonly #answers: ChoiceRun[] = [];
  #compaction: Compaction | null = null;

  constructor(asked: Looked, making: ResponseMaking, pass: Pass) {
    this.#asked = asked;
    this.#making = making;
    this.#pass = pass;
  }

  /** The summary of a conversation that is compacted. @returns false where there is no answer to make */
  async *before(): AsyncGenerator<EnginePass, boolean> {
    this.#compaction = await compactionOf(this.#asked);
    if (this.#compaction === null) return true;
    const summary = await summaryOf(this.#asked, this.#compaction, this.#pass);
    this.#making.beginSummary(summary.plan, this.#compaction);
    yield summary;
    return !this.#making.isOver;
  }

  /**
   * An answer of the model to all that there is so far; null: no token is left for it, and the response has ended.
   * @param mayCall false: without calls @param isFirst false: there have been calls, so that none is required any more
   */
  async answer(mayCall: boolean, isFirst: boolean): Promise<EnginePass | null> {
    const { request } = this.#asked;
    const most = request.max_output_tokens;
    const used = this.#answers.reduce((sum, { completionTokens }) => sum + completionTokens, 0);
    if (most !== undefined && used >= most) {
      this.#making.endBetween('length');
      return null;
    }
    const ask = this.#askFor(mayCall, isFirst);
    const limit = most === undefined ? undefined : most - used;
    const pass = await answerPass(this.#asked, this.#items, { ask, limit }, this.#pass);
    this.#answers.push(pass.run);
    this.#making.beginAnswer(pass.plan);
    return pass;
  }

  /** Items that the model receives now. */
  get #items(): readonly KeptItem[] {
    const { items } = this.#asked.conversation;
    const { output } = this.#making;
    if (this.#compaction !== null) return output;
    return output.length === 0 ? items : [...items, ...output];
  }

  #askFor(mayCall: boolean, isFirst: boolean): Omit<ChatAsk, 'messages'> {
    const { request, conversation, signal } = this.#asked;
    const ask = { ...askOf(request, conversation.tools), signal };
    return { ...ask, ...choiceOfPass(ask, mayCall, isFirst) };
  }
}

/** The messages of items that a conversation begins with, or that have no pictures. */
function seenItems({ conversation, seen }: Looked, items: readonly KeptItem[]): SeenMessages {
  if (items === conversation.items) return seen;
  return seenWith(chatOf(conversation, items), seen.picturesOf(seen.messages));
}

/** The compaction that a request asks for, or that its conversation needs; null: none. */
async function compactionOf(asked: Looked): Promise<Compaction | null> {
  const { model, request, conversation } = asked;
  const { items, isToCompact, tools } = conversation;
  if (isToCompact) return summaryOnly(items);
  const threshold = compactionThreshold(request, model);
  const compaction = threshold === null ? null : wholeCompaction(items, model);
  if (threshold === null || compaction === null) return null;
  const { messages, picturesOf } = asked.seen;
  const pictures = picturesOf(messages);
  const { promptTokens } = await toldPrompt(model, { ...askOf(request, tools), messages, pictures });
  return promptTokens.length >= threshold ? compaction : null;
}

function summaryOf(asked: Looked, { items }: Compaction, { terms, live }: Pass): Promise<EnginePass> {
  const { context, model, request, conversation, signal } = asked;
  const ask = { ...askOf(request, conversation.tools), signal };
  return summaryPass(context, model, { engine: request, ask, seen: seenItems(asked, items) }, terms, live);
}

/** What a pass is asked for, and how many tokens it may have; undefined: as many as the model may give. */
interface PassAsk {
  ask: Omit<ChatAsk, 'messages'>;
  limit: number | undefined;
}

async function answerPass(
  asked: Looked,
  items: readonly KeptItem[],
  { ask, limit }: PassAsk,
  pass: Pass,
): Promise<EnginePass> {
  const { context, model, request } = asked;
  const { live, sinceMs } = pass;
  const plan = await planOf(asked, items, { ask, limit });
  warnOfAll(plan.warnings, asked.warn);
  const maxTokens = chatMaxTokens(model, limit, plan.promptTokens.length);
  const logProbs = hasLogProbs(request) ? (request.top_logprobs ?? 0) : undefined;
  if (request.background && request.stream) {
    pass.terms.memory.addAnswer(keptEventsMemory(maxTokens, logProbs === undefined ? 0 : 1 + logProbs));
  }
  const limited = withTimeLeft(commonOf(request), pass.terms, sinceMs);
  const budget = askedBudget(request);
  const chat = { request: limited.request, plan, promptParam: 'input', maxTokens, logProbs, budget };
  return { plan, run: await plannedRun(context, model, chat, limited.terms, live) };
}

async function planOf(asked: Looked, items: readonly KeptItem[], { ask, limit }: PassAsk): Promise<ChatPlan> {
  const { model, request, conversation, warn } = asked;
  const guide = await guideOfRequest(commonOf(request), model.codec, warn);
  const { messages, picturesOf } = seenItems(asked, items);
  const plan = async (kept: readonly ChatMessage[]) => {
    const pictures = picturesOf(kept);
    try {
      return await planChat(model, {
        ...ask,
        messages: kept,
        pictures,
        guide,
        ignoreEos: request.ignore_eos,
      });
    } catch (error) {
      await rethrowPatternFault(error, conversation.tools, model.codec);
      throw error;
    }
  };
  if (request.truncation !== 'auto') return plan(messages);
  return planWithin(model, messages, plan, limit ?? 1);
}

export function hasLogProbs({ include = [] }: ResponseRequest): boolean {
  return include.includes(LOG_PROBS);
}
