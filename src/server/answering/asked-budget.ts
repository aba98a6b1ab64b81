import type { AskedBudget } from '../../generation/reasoning/reasoning-budget.js';
import { ApiError } from '../web/errors.js';

const NAMES = ['thinking_token_budget', 'thinking_budget', 'thinking_budget_tokens'] as const;

/** The limit of reasoning that a request asks for under one of its names. @throws ApiError for two of them. */
export function askedBudget(
  request: Readonly<Partial<Record<(typeof NAMES)[number], number | undefined>>>,
): AskedBudget | undefined {
  const [first, second] = NAMES.filter((name) => request[name] !== undefined);
  if (first === undefined) return undefined;
  if (second === undefined) return { tokens: request[first]!, param: first };
  throw new ApiError(400, `'${first}' and '${second}' exclude each other: they are two names of one limit.`, {
    param: second,
  });
}
