import { setImmediate } from 'node:timers/promises';
import { type ChatMessage, ChatTemplateError } from '../../../models/chat-template.js';
import type { PromptTokens } from '../text-model.js';
import { callsOf, nativeMessages, plainMessages, templateTool } from '../tools/tool-messages.js';
import type { FunctionTool } from '../tools/types.js';
import { callForms } from './call-forms.js';
import { foldSystem, joinNeighbours, roleForms, systemAsUser } from './role-forms.js';
import { simpleTool } from './simple-schema.js';

/** A conversation to render. */
export interface PromptAsk {
  messages: readonly ChatMessage[];
  tools: readonly FunctionTool[];
  /** True where the template describes functions and writes calls and results; otherwise the messages must. */
  usesTemplate: boolean;
}

/** A conversation in a form that a template may take. */
export interface TemplateInput {
  messages: readonly ChatMessage[];
  /** Functions in the form of templates; undefined: the template gets none. */
  tools: readonly object[] | undefined;
}

interface Form extends TemplateInput {
  usesTemplate: boolean;
  warnings: readonly string[];
}

export interface FoundPrompt {
  promptTokens: PromptTokens;
  /** False where the messages describe functions, calls and results. */
  usesTemplate: boolean;
  /** What was changed about the functions, a sentence each. */
  warnings: readonly string[];
}

/** Milliseconds after which a template that refuses is not tried again; a model's own takes a few. */
const MAX_MS = 2000;

const SIMPLER = "The chat template refused the functions' schemas; it was given simpler ones.";
const AS_TEXT = 'The chat template refused the functions; a text in the conversation describes them instead.';

/**
 * Renders a conversation as it is given. If the template refuses it, other forms of the same conversation are tried, the
 * nearest first: another order of roles, other forms of calls, simpler schemas of functions, and last functions, calls
 * and results as text. There are at most 10 tries. A form is kept where the template takes it, or refuses it for another
 * reason.
 * @throws the first refusal where the template takes no form; as `render`.
 */
export async function findPrompt(
  ask: PromptAsk,
  render: (input: TemplateInput) => PromptTokens | Promise<PromptTokens>,
): Promise<FoundPrompt> {
  const until = performance.now() + MAX_MS;
  const given = asGiven(ask);
  const first = await attempt(given, render);
  if (!(first instanceof ChatTemplateError)) return first;
  let form = given;
  let reason = first.message;
  for (const formsOf of ladder(ask, first)) {
    let [kept, keptReason] = [form, reason];
    for (const other of formsOf(form)) {
      if (performance.now() > until) throw first;
      // Between two tries this thread does other work.
      await setImmediate();
      const outcome = await attempt(other, render);
      if (!(outcome instanceof ChatTemplateError)) return outcome;
      if (outcome.message !== reason) [kept, keptReason] = [other, outcome.message];
    }
    [form, reason] = [kept, keptReason];
  }
  throw first;
}

async function attempt(
  { messages, tools, usesTemplate, warnings }: Form,
  render: (input: TemplateInput) => PromptTokens | Promise<PromptTokens>,
): Promise<FoundPrompt | ChatTemplateError> {
  try {
    return { promptTokens: await render({ messages, tools }), usesTemplate, warnings };
  } catch (error) {
    if (error instanceof ChatTemplateError && error.refusal !== null) return error;
    throw error;
  }
}

function asGiven({ messages, tools, usesTemplate }: PromptAsk): Form {
  const form = { usesTemplate, warnings: [] };
  if (!usesTemplate) return { ...form, messages: plainMessages(messages, tools), tools: undefined };
  const told = tools.length === 0 ? undefined : tools.map(templateTool);
  return { ...form, messages: nativeMessages(messages), tools: told };
}

type FormsOf = (form: Form) => Iterable<Form>;

/** Kinds of other forms, in the order in which they are tried. */
function ladder(ask: PromptAsk, { refusal }: ChatTemplateError): FormsOf[] {
  const roles: FormsOf = (form) => withMessages(form, roleForms(form.messages));
  if (!ask.usesTemplate) return [roles];
  const calls: FormsOf = (form) => withMessages(form, callForms(form.messages));
  const schemas: FormsOf = (form) => {
    if (form.tools === undefined) return [];
    return [{ ...form, tools: ask.tools.map(simpleTool).map(templateTool), warnings: [SIMPLER] }];
  };
  const kinds = [roles, calls, schemas];
  // Rules are about roles; operations fail on schemas.
  return [...(refusal === 'rule' ? kinds : kinds.reverse()), () => asText(ask)];
}

function* withMessages(form: Form, all: Iterable<readonly ChatMessage[]>): Generator<Form> {
  for (const messages of all) yield { ...form, messages };
}

/** The conversation without functions, calls and results but as text, in the orders of roles that most templates take. */
function* asText({ messages, tools }: PromptAsk): Generator<Form> {
  const hasCalls = messages.some((message) => message.role === 'tool' || callsOf(message).length > 0);
  if (tools.length === 0 && !hasCalls) return;
  const plain = plainMessages(messages, tools);
  for (const inOrder of [foldSystem, systemAsUser]) {
    const ordered = joinNeighbours(inOrder(plain));
    yield {
      messages: ordered,
      tools: undefined,
      usesTemplate: false,
      warnings: tools.length > 0 ? [AS_TEXT] : [],
    };
  }
}
