import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatPlan, planChat } from '../../../generation/chat-plan.js';
import { type SeenMessages, seenWith } from '../../../generation/pictures/see-messages.js';
import { toldPrompt } from '../../../generation/prompt/chat-prompt.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { askedBudget } from '../../answering/asked-budget.js';
import { guideOfRequest } from '../../answering/guides.js';
import { planWithin } from '../../answering/plan-within.js';
import { plannedRun } from '../../answering/planned-run.js';
import { seenMessages } from '../../answering/seen-chat.js';
import { chatMaxTokens } from '../../answering/text-request.js';
import { keptEventsMemory } from '../../web/memory/memory-estimates.js';
import type { LiveRequest } from '../../web/request-registry.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { type Warn, warnOfAll } from '../../web/warnings.js';
import { LOG_PROBS, type ResponseRequest } from '../schemas/responses.js';
import { type Compaction, compactionThreshold, summaryOnly, wholeCompaction } from './compaction.js';
import { type Conversation, chatOf } from './conversation.js';
import type { ConversationTurn } from './conversation-store.js';
import { rethrowPatternFault } from './custom-tools.js';
import { askOf, commonOf } from './response-ask.js';
import { ResponseMaking } from './response-making.js';
import { type ResponsePass, ResponseRun } from './response-run.js';
import type { KeptItem, OwnResponses } from './response-store.js';
import type { Origin } from './response-task.js';
import type { ResponsesContext } from './responses-context.js';
import { summaryPass } from './summary-pass.js';

/** A response that is asked for. */
export interface Asked {
  context: ResponsesContext;
  model: ServedGenerator;
  request: ResponseRequest;
  /** The request as it came. */
  json: unknown;
  conversation: Conversation;
  /** Its turn in a stored conversation; null: it belongs to none. */
  turn: ConversationTurn | null;
  store: OwnResponses;
  warn: Warn;
  /** Aborted when the client leaves. */
  signal?: AbortSignal | undefined;
  /** Where another server may go on with it: from where it is made, and what was told of it. */
  origin?: Origin;
  told?: readonly string[];
}

/** A response whose pictures have been looked at. */
interface Looked extends Asked {
  /** The messages of all items of its conversation. */
  seen: SeenMessages;
}

/** Terms of a pass, which ends when the time of all passes is over. */
interface Pass {
  terms: RequestTerms;
  live: LiveRequest;
  sinceMs: number;
}

/** Starts the passes that make a response. @throws ApiError and as planChat. */
export async function begin(
  given: Asked,
  live: LiveRequest,
  terms: RequestTerms,
): Promise<{ run: ResponseRun; making: ResponseMaking }> {
  const { context, model, request, conversation, turn, store } = given;
  const { items } = conversation;
  const exchange = { signal: given.signal, terms };
  const seen = await seenMessages(context, model, chatOf(conversation, items), exchange, 'input');
  const asked = { ...given, seen };
  // The request ends with its last pass.
  const pass = { terms, live: { ...live, release: () => {} }, sinceMs: performance.now() };
  const compaction = await compactionOf(asked);
  const first =
    compaction === null ? await answerPass(asked, items, pass) : await summaryOf(asked, compaction, pass);
  let making: ResponseMaking | null = null;
  const next = async (): Promise<ResponsePass | null> => {
    if (compaction === null || making === null || making.isOver) return null;
    const answer = await answerPass(asked, making.output, pass);
    making.beginAnswer(answer.plan);
    return answer;
  };
  const run = new ResponseRun(first, next, () => live.release());
  making = new ResponseMaking({
    ...{ model, request, conversation, run, store, turn },
    hasLogProbs: hasLogProbs(request),
    ...{ origin: asked.origin, told: asked.told },
  });
  if (compaction === null) making.beginAnswer(first.plan);
  else making.beginSummary(first.plan, compaction);
  live.addId(making.id);
  return { run, making };
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

function summaryOf(asked: Looked, { items }: Compaction, { terms, live }: Pass): Promise<ResponsePass> {
  const { context, model, request, conversation, signal } = asked;
  const ask = { ...askOf(request, conversation.tools), signal };
  return summaryPass(context, model, { engine: request, ask, seen: seenItems(asked, items) }, terms, live);
}

async function answerPass(asked: Looked, items: readonly KeptItem[], pass: Pass): Promise<ResponsePass> {
  const { context, model, request } = asked;
  const { live, sinceMs } = pass;
  const plan = await planOf(asked, items);
  warnOfAll(plan.warnings, asked.warn);
  const maxTokens = chatMaxTokens(model, request.max_output_tokens, plan.promptTokens.length);
  const logProbs = hasLogProbs(request) ? (request.top_logprobs ?? 0) : undefined;
  if (request.background && request.stream) {
    pass.terms.memory.addAnswer(keptEventsMemory(maxTokens, logProbs === undefined ? 0 : 1 + logProbs));
  }
  const common = commonOf(request);
  const limited = { ...common, time_limit_ms: left(common.time_limit_ms ?? null, sinceMs) ?? undefined };
  const terms = { ...pass.terms, timeLimitMs: left(pass.terms.timeLimitMs, sinceMs) };
  const budget = askedBudget(request);
  const chat = { request: limited, plan, promptParam: 'input', maxTokens, logProbs, budget };
  return { plan, run: await plannedRun(context, model, chat, terms, live) };
}

/** Milliseconds that are left of a limit. */
function left(limitMs: number | null, sinceMs: number): number | null {
  return limitMs === null ? null : Math.max(1, Math.ceil(limitMs - (performance.now() - sinceMs)));
}

async function planOf(asked: Looked, items: readonly KeptItem[]): Promise<ChatPlan> {
  const { model, request, conversation, warn, signal } = asked;
  const ask = { ...askOf(request, conversation.tools), signal };
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
  return planWithin(model, messages, plan, request.max_output_tokens ?? 1);
}

function hasLogProbs({ include = [] }: ResponseRequest): boolean {
  return include.includes(LOG_PROBS);
}
