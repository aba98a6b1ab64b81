import { messageOf } from '../../base/error-text.js';
import type { TokenizerFiles } from '../../models/checkpoints/checkpoint.js';
import { readsParts } from '../../models/content-format.js';
import { Template } from '../../models/jinja/template.js';
import { type ReasoningParserName, reasoningStyle } from '../generation/reasoning/reasoning-style.js';
import { mentions, toolStyle } from '../generation/tools/detect-format.js';
import type { ToolFormatName } from '../generation/tools/types.js';

/** Abilities of a model's chat templates, as chats use them. */
export interface TemplateAbilities {
  /** Why the template cannot be used; null: it can. */
  problem: string | null;
  /** Format of calls that the template describes functions for; null: Skein describes them in the messages. */
  tools: ToolFormatName | null;
  /** Way in which reasoning is separated from answers; null: there is none. */
  reasoning: ReasoningParserName | null;
  /** Variable of the template that turns reasoning on and off, or says how much; null: none. */
  reasoningSwitch: string | null;
  /** True where contents reach the template as lists of parts. */
  readsParts: boolean;
  /** Names of further templates. */
  others: string[];
}

const SWITCHES = ['enable_thinking', 'reasoning_effort'];

/** What a model's chat templates can; null: it has none. */
export function templateAbilities({
  chatTemplate,
  namedTemplates = {},
}: Pick<TokenizerFiles, 'chatTemplate' | 'namedTemplates'>): TemplateAbilities | null {
  const others = Object.keys(namedTemplates);
  const source = chatTemplate ?? namedTemplates[others[0] ?? ''] ?? null;
  if (source === null) return null;
  // A template for conversations with functions takes the place of the usual one there.
  const { format, usesTemplate } = toolStyle(namedTemplates.tool_use ?? source, 'auto');
  const style = reasoningStyle(source, 'auto');
  const { parts, problem } = parsed(source);
  return {
    problem,
    tools: usesTemplate ? format : null,
    reasoning: style === 'none' ? null : style,
    reasoningSwitch: SWITCHES.find((name) => mentions(source, name)) ?? null,
    readsParts: parts,
    others,
  };
}

function parsed(source: string): { parts: boolean; problem: string | null } {
  try {
    return { parts: readsParts(new Template(source)), problem: null };
  } catch (error) {
    return { parts: false, problem: `cannot be read: ${messageOf(error)}` };
  }
}
