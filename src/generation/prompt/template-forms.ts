import { setImmediate } from 'node:timers/promises';
import { type ChatMessage, ChatTemplateError } from '../../../models/chat-template.js';
import type { PromptTokens } from '../text-model.js';
import { callsOf, nativeMessages, plainMessages, templateTool } from '../tools/tool-messages.js';
import type { FunctionTool } from '../tools/types.js';
import { callForms } from './call-forms.js';
import { roleForms } from './role-forms.js';
import { simpleTool } from './simple-schema.js';

/** A conversation to render. */
export interface PromptAsk {
  messages: readonly ChatMessage[];
  tools: readonly FunctionTool[];
  /** True where the template describes functions and writes calls and results; otherwise the messages must. */
  usesTemplate: boolean;
  /** The form of messages that the template takes as a whole. Default: as they are. */
  formOf?: ((messages: readonly ChatMessage[]) => readonly ChatMessage[]) | undefined;
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

/** A form that is refused, and why. */
interface Refused {
  form: Form;
  reason: string;
}

/**
 * Renders a conversation as it is given. If the template refuses it, other forms of the same conversation are tried, the
 * nearest first: another order of roles, other forms of calls, simpler schemas of functions, and last functions, calls
 * and results as text. There are at most 20 tries. A form is kept where the template takes it, or refuses it for another
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
  const tryOther = async (form: Form) => {
    if (performance.now() > until) throw first;
    // Between two tries this thread does other work.
    await setImmediate();
    return attempt(form, render);
  };
  for (const kinds of ladders(ask, first)) {
    let nearest: Refused = { form: given, reason: first.message };
    for (const formsOf of kinds) {
      const found = await nearer(nearest, formsOf, tryOther);
      if (!('form' in found)) return found;
      nearest = found;
    }
  }
  for (const form of asText(ask)) {
    const outcome = await tryOther(form);
    if (!(outcome instanceof ChatTemplateError)) return outcome;
  }
  throw first;
}

/** The prompt of the first form that is taken, else the one that came nearest. */
async function nearer(
  from: Refused,
  formsOf: FormsOf,
  tryForm: (form: Form) => Promise<FoundPrompt | ChatTemplateError>,
): Promise<FoundPrompt | Refused> {
  let nearest = from;
  for (const form of formsOf(from.form)) {
    const outcome = await tryForm(form);
    if (!(outcome instanceof ChatTemplateError)) return outcome;
    const { message: reason } = outcome;
    if (reason !== from.reason && reason !== nearest.reason) nearest = { form, reason };
  }
  return nearest;
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

function asGiven({ messages, tools, usesTemplate, formOf = (given) => given }: PromptAsk): Form {
  const form = { usesTemplate, warnings: [] };
  if (!usesTemplate) return { ...form, messages: plainMessages(messages, tools), tools: undefined };
  const told = tools.length === 0 ? undefined : tools.map(templateTool);
  return { ...form, messages: formOf(nativeMessages(messages)), tools: told };
}

type FormsOf = (form: Form) => Iterable<Form>;

/**
 * Kinds of other forms, in the orders in which they are tried. A template reports one fault at a time, and
 * not always of the roles first, so the kinds come in two orders.
 */
function ladders(ask: PromptAsk, { refusal }: ChatTemplateError): FormsOf[][] {
  const roles: FormsOf = (form) => withMessages(form, roleForms(form.messages));
  if (!ask.usesTemplate) return [[roles]];
  const calls: FormsOf = (form) => withMessages(form, callForms(form.messages));
  const schemas: FormsOf = (form) => {
    if (form.tools === undefined) return [];
    return [{ ...form, tools: ask.tools.map(simpleTool).map(templateTool), warnings: [SIMPLER] }];
  };
  const pairs = [
    [roles, calls],
    [calls, roles],
  ];
  // Rules are about roles and calls; operations fail on schemas.
  return pairs.map((pair) => (refusal === 'rule' ? [...pair, schemas] : [schemas, ...pair]));
}

function* withMessages(form: Form, all: Iterable<readonly ChatMessage[]>): Generator<Form> {
  for (const messages of all) yield { ...form, messages };
}

/** The conversation without functions, calls and results but as text, in the orders of roles too. */
function* asText({ messages, tools, usesTemplate }: PromptAsk): Generator<Form> {
  const hasCalls = messages.some((message) => message.role === 'tool' || callsOf(message).length > 0);
  if (!usesTemplate || (tools.length === 0 && !hasCalls)) return;
  const plain = plainMessages(messages, tools);
  const warnings = tools.length > 0 ? [AS_TEXT] : [];
  for (const ordered of [plain, ...roleForms(plain)]) {
    yield { messages: ordered, tools: undefined, usesTemplate: false, warnings };
  }
}
