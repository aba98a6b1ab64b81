/**
 * Texts that clients put at the head of their prompts, that change from request to request and say nothing to a model: with them nothing after
 * them is found in the cache. Each rule names one, and can be switched off (--prompt-rules).
 */
export const PROMPT_RULES = {
  /** Claude Code's first block of the system prompt: its version, and a checksum of the request in some versions. */
  'billing-line': (text: string) => text.startsWith('x-anthropic-billing-header:'),
} as const satisfies Record<string, (text: string) => boolean>;

export type PromptRule = keyof typeof PROMPT_RULES;

export const PROMPT_RULE_NAMES = Object.keys(PROMPT_RULES) as PromptRule[];

/** True if one of the rules leaves a block of a system prompt out. */
export function isLeftOut(text: string, rules: ReadonlySet<PromptRule>): boolean {
  return PROMPT_RULE_NAMES.some((name) => rules.has(name) && PROMPT_RULES[name](text));
}

/** All rules but these. */
export function promptRulesWithout(names: readonly PromptRule[] = []): ReadonlySet<PromptRule> {
  return new Set(PROMPT_RULE_NAMES.filter((name) => !names.includes(name)));
}
