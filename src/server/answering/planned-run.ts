import { type ChatPlan, plannedFields } from '../../generation/chat-plan.js';
import { type AskedBudget, reasoningBudget } from '../../generation/reasoning/reasoning-budget.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { cacheSaltFor } from '../web/access/cache-salt.js';
import type { LiveRequest } from '../web/request-registry.js';
import type { RequestTerms } from '../web/request-terms.js';
import { type ChoiceCounts, ChoiceRun, ONE_ANSWER } from './choice-run.js';
import { guideParamOf } from './guides.js';
import type { CommonRequest } from './schemas/common.js';
import type { AnsweringServices } from './services.js';
import { encodedFields, textRequest } from './text-request.js';

/** A planned chat, with the settings of its request in the fields of chat. */
export interface PlannedChat {
  request: CommonRequest;
  plan: ChatPlan;
  /** The request's name of its messages. */
  promptParam: string;
  maxTokens: number;
  logProbs?: number | undefined;
  contextLogProbs?: number | undefined;
  /** Limit of its reasoning; default: none. */
  budget?: AskedBudget | undefined;
  /** Default: one answer. */
  counts?: ChoiceCounts;
}

/** Starts the answers to a planned chat, for every route that has one. @throws as ChoiceRun. */
export async function plannedRun(
  { observe, recentPrompts }: Pick<AnsweringServices, 'observe' | 'recentPrompts'>,
  model: ServedGenerator,
  chat: PlannedChat,
  terms: RequestTerms,
  live: LiveRequest,
): Promise<ChoiceRun> {
  const { request, plan, counts = ONE_ANSWER, budget, ...fields } = chat;
  const text = textRequest(request, {
    ...fields,
    ...plannedFields(plan),
    encoded: await encodedFields(request, model),
    reasoningBudget: await reasoningBudget(model.codec, plan, budget),
    guideParam: guideParamOf(request) ?? 'tools',
  });
  const salt = cacheSaltFor(terms.caller, text.cacheSalt);
  const parting = recentPrompts.note(`${model.id} ${salt ?? ''}`, plan.promptTokens);
  if (parting !== null) terms.onParting?.(parting);
  return ChoiceRun.start(model, [text], counts, observe, terms, live);
}
