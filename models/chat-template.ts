import { Environment, Template } from '@huggingface/jinja';
import type { ErrorRecord } from '../base/error-record.js';
import { messageOf } from '../base/error-text.js';
import { field, type NamedText, says } from '../base/named-text.js';
import { asSentence } from '../base/sentences.js';
import { SkeinError } from '../base/skein-error.js';
import { KnownToolLists, type KnownTools } from './known-tools.js';
import {
  type Allowance,
  countingInterpreter,
  MAX_TEMPLATE_STEPS,
  RenderingCount,
  range,
  StepsError,
  textUnits,
} from './rendering-limits.js';
import { strftime } from './strftime.js';
import { type GuardedRendering, SpecialTextGuard } from './tokenizer/special-text-guard.js';
import type { TextSegment, Tokenizer } from './tokenizer/tokenizer.js';

export interface ChatTextPart {
  type: string;
  text?: string | undefined;
}

/** A message in the OpenAI API's form; further fields reach the template unchanged. */
export interface ChatMessage {
  role: string;
  content?: string | readonly ChatTextPart[] | null;
  tool_calls?: readonly unknown[];
  [field: string]: unknown;
}

export interface RenderOptions {
  /** Ends the prompt with the beginning of an assistant's message. */
  addGenerationPrompt?: boolean;
  /** Ends the prompt within the last message, so that the model continues it. Not together with addGenerationPrompt. */
  continueFinalMessage?: boolean;
  /** Reasoning with which the answer has begun; it follows what addGenerationPrompt writes. */
  begunReasoning?: BegunReasoning;
  /** Functions: a list, or one as JSON, which is remembered. */
  tools?: readonly unknown[] | string | null;
  /** Further variables of the template. They are treated as the user's text. */
  templateKwargs?: Record<string, unknown>;
  /** Replacements for the model's own tokens; trusted text. */
  bosToken?: string | null;
  eosToken?: string | null;
}

/** Reasoning that the model goes on with. */
export interface BegunReasoning {
  /** Marks around reasoning; the first is written unless the template has written it. */
  begin: string;
  end: string;
  text: string;
}

export interface RenderedPrompt {
  text: string;
  /**
   * The text as segments for Tokenizer.encodeSegments: special tokens of the template are tokens, a user's are text.
   */
  segments: TextSegment[];
}

/**
 * How a template refuses messages:
 *
 *   rule        by raise_exception
 *   operation   something in it fails on their values, such as a text that is added to a list
 */
export type TemplateRefusal = 'rule' | 'operation';

/**
 * An error for messages that cannot be rendered: the template refuses them, or there is no template. The request is at
 * fault.
 */
export class ChatTemplateError extends SkeinError {
  override name = 'ChatTemplateError';
  override readonly code = 'SKEIN_CHAT_TEMPLATE';
  /** How the template refused the messages; null: it did not, it took too much work, or an option was wrong. */
  readonly refusal: TemplateRefusal | null;

  constructor(text: NamedText, options: ErrorOptions & { refusal?: TemplateRefusal | null } = {}) {
    super(text, options);
    this.refusal = options.refusal ?? null;
  }

  /** The error that a thread threw. */
  static of({ text, held }: Pick<ErrorRecord, 'text' | 'held'>): ChatTemplateError {
    return new ChatTemplateError(text, { refusal: held.refusal as TemplateRefusal | null });
  }
}

export interface ChatTemplateOptions {
  /** Clock for strftime_now. */
  now?: () => Date;
}

/** Most units of a text that a template makes, beside those for its values. */
const MAX_TEXT_UNITS = 1_048_576;
/**
 * Most units that a template writes for each unit of a value: tojson writes up to six (\\u001f), and some values are
 * written twice.
 */
const UNITS_PER_UNIT = 16;

/** Names of variables that templateKwargs may not use. */
const RESERVED = new Set([
  ...['true', 'false', 'none', 'True', 'False', 'None', 'namespace', 'range', 'raise_exception'],
  ...['strftime_now', 'messages', 'add_generation_prompt', 'bos_token', 'eos_token', 'tools'],
]);

/** Keys of roles, of which some templates build special tokens. */
const ROLE_ONLY = new Set(['role']);

/** A model's chat template, parsed once and rendered as Hugging Face's apply_chat_template does. */
export class ChatTemplate {
  readonly #source: string | null;
  readonly #template: Template | null;
  readonly #guard: SpecialTextGuard;
  readonly #inspected: ReadonlySet<string>;
  readonly #tokenizer: Pick<Tokenizer, 'bosToken' | 'eosToken' | 'controlTokenTexts'>;
  readonly #now: () => Date;
  readonly #toolLists: KnownToolLists;

  /**
   * @param source Jinja source; null for a model without a template, whose chats are refused.
   * @throws ChatTemplateError where the source is not Jinja.
   */
  constructor(
    source: string | null,
    tokenizer: Pick<Tokenizer, 'bosToken' | 'eosToken' | 'controlTokenTexts'>,
    options: ChatTemplateOptions = {},
  ) {
    this.#source = source;
    this.#tokenizer = tokenizer;
    this.#guard = new SpecialTextGuard(tokenizer.controlTokenTexts);
    this.#inspected = inspectedTexts(source ?? '', tokenizer.controlTokenTexts);
    this.#now = options.now ?? (() => new Date());
    this.#toolLists = new KnownToolLists((tools) => this.#guard.see(tools, { unmarkedKeys: ROLE_ONLY }));
    try {
      this.#template = source === null ? null : new Template(source);
    } catch (error) {
      throw new ChatTemplateError(`The chat template cannot be parsed: ${asSentence(reasonOf(error))}`, {
        cause: error,
      });
    }
  }

  /** True where the model has a template; without one, render refuses. */
  get available(): boolean {
    return this.#template !== null;
  }

  /**
   * Renders a prompt. @throws ChatTemplateError where the template refuses the messages, or options contradict each
   * other.
   */
  render(messages: readonly ChatMessage[], options: RenderOptions = {}): RenderedPrompt {
    return this.#render(messages, options, { steps: MAX_TEMPLATE_STEPS, grows: true });
  }

  /** Renders a prompt; null where that takes more than `steps` steps, or one step may be very long. */
  renderWithin(
    steps: number,
    messages: readonly ChatMessage[],
    options: RenderOptions,
  ): RenderedPrompt | null {
    try {
      return this.#render(messages, options, { steps, grows: false });
    } catch (error) {
      if (error instanceof ChatTemplateError && error.cause instanceof StepsError) return null;
      throw error;
    }
  }

  #render(messages: readonly ChatMessage[], options: RenderOptions, allowance: Allowance): RenderedPrompt {
    if (this.#template === null || this.#source === null) {
      throw new ChatTemplateError(
        'The model has no chat template: give it one (chat_template.jinja beside its tokenizer.json), ' +
          'or send a plain prompt to /v1/completions.',
      );
    }
    const { addGenerationPrompt = false, continueFinalMessage = false } = options;
    if (addGenerationPrompt && continueFinalMessage) {
      throw new ChatTemplateError(
        'add_generation_prompt and continue_final_message cannot both be true: one starts a new message, ' +
          'the other goes on with the last.',
      );
    }
    for (const name of Object.keys(options.templateKwargs ?? {})) {
      if (RESERVED.has(name)) throw new ChatTemplateError(`chat_template_kwargs cannot set ${name}.`);
    }
    const rendering = this.#guard.open(this.#source);
    const { known, tools } = this.#readTools(options.tools ?? null);
    const given = this.#protect(
      rendering,
      {
        messages: messages.map(normalizeMessage),
        tools,
        kwargs: options.templateKwargs ?? {},
        begun: options.begunReasoning?.text ?? '',
      },
      known,
    );
    const units = MAX_TEXT_UNITS + UNITS_PER_UNIT * (textUnits(given) + (known?.textUnits ?? 0));
    let text = this.#run(new RenderingCount(allowance, units), known, given.kwargs, {
      messages: given.messages,
      ...(known === null ? { tools: given.tools } : {}),
      add_generation_prompt: addGenerationPrompt,
      bos_token: options.bosToken ?? this.#tokenizer.bosToken ?? '',
      eos_token: options.eosToken ?? this.#tokenizer.eosToken ?? '',
    });
    if (continueFinalMessage) text = cutAfterFinalMessage(text, given.messages);
    if (options.begunReasoning) text = openReasoning(text, options.begunReasoning) + given.begun;
    const segments = rendering.segments(text);
    return { text: segments.map((segment) => segment.text).join(''), segments };
  }

  /** Functions as they are known, or as a list where their strings have to be protected each time. */
  #readTools(tools: readonly unknown[] | string | null): { known: KnownTools | null; tools: unknown } {
    if (typeof tools !== 'string') return { known: null, tools };
    try {
      const known = this.#toolLists.of(tools);
      return known.seen.isAtRisk ? { known: null, tools: JSON.parse(tools) } : { known, tools: null };
    } catch (error) {
      throw refusal(error);
    }
  }

  #protect<T extends { messages: ChatMessage[] }>(
    rendering: GuardedRendering,
    value: T,
    known: KnownTools | null,
  ): T {
    // An assistant's message is the model's own text, and the template takes its reasoning marks apart.
    const within = new Set(value.messages.filter((message) => message.role === 'assistant'));
    try {
      const options = { unmarkedKeys: ROLE_ONLY, kept: { texts: this.#inspected, within } };
      return rendering.protect(value, options, known?.seen);
    } catch (error) {
      throw new ChatTemplateError(reasonOf(error), { cause: error });
    }
  }

  #run(
    count: RenderingCount,
    known: KnownTools | null,
    kwargs: Record<string, unknown>,
    variables: Record<string, unknown>,
  ): string {
    const environment = new Environment();
    const globals: Record<string, unknown> = {
      ...{ true: true, false: false, none: null, True: true, False: false, None: null },
      range: (...args: Parameters<typeof range>) => {
        const numbers = range(...args);
        count.spend(numbers.length);
        return numbers;
      },
      raise_exception: (message: unknown) => {
        throw new ChatTemplateError(String(message), { refusal: 'rule' });
      },
      strftime_now: (format: unknown) => strftime(this.#now(), String(format)),
    };
    try {
      const all = { documents: null, ...kwargs, ...globals, ...variables };
      for (const [name, value] of Object.entries(all)) environment.set(name, value);
      if (known !== null) environment.setVariable('tools', known.value);
      const result = countingInterpreter(environment, count, known?.written).run(this.#template!.parsed);
      return String(result.value);
    } catch (error) {
      throw refusal(error);
    }
  }
}

function refusal(error: unknown): ChatTemplateError {
  return new ChatTemplateError(
    says`The chat template refused the ${field('messages')}: ${asSentence(reasonOf(error))}`,
    { cause: error, refusal: refusalOf(error) },
  );
}

function refusalOf(error: unknown): TemplateRefusal | null {
  if (error instanceof ChatTemplateError) return error.refusal;
  // Limits are errors of this package, or of the engine's stack.
  return error instanceof SkeinError || error instanceof RangeError ? null : 'operation';
}

/**
 * Special tokens that the template looks for in contents, as reasoning models' templates do to leave out old reasoning:
 *
 *   content.split('</think>')   '<think>' in content   content.startswith('<think>')
 */
function inspectedTexts(source: string, specialTexts: readonly string[]): Set<string> {
  // Special tokens are short; without the bound, each of many quotes that nothing closes would be read to the end.
  const literal = `'(?:[^'\\\\]|\\\\.){0,256}'|"(?:[^"\\\\]|\\\\.){0,256}"`;
  const calls = 'split|rsplit|partition|startswith|endswith|replace|find|strip|lstrip|rstrip';
  const pattern = new RegExp(`\\.(?:${calls})\\(\\s*(${literal})|(${literal})\\s+(?:not\\s+)?in\\s`, 'g');
  const texts = Array.from(source.matchAll(pattern), (match) => (match[1] ?? match[2]!).slice(1, -1));
  const found = new Set(texts.map((text) => text.replaceAll('\\n', '').trim()));
  return new Set(specialTexts.filter((text) => found.has(text)));
}

/**
 * Normalises a message. Its content becomes one string: '' for null (with tool calls), the joined lines of text parts,
 * since templates of text models concatenate content. Arguments of tool calls become objects, which templates write
 * with tojson.
 */
function normalizeMessage(message: ChatMessage, index: number): ChatMessage {
  const normalized: ChatMessage = { ...message, content: contentText(message, index) };
  if (message.tool_calls !== undefined) normalized.tool_calls = message.tool_calls.map(withParsedArguments);
  return normalized;
}

function contentText(message: ChatMessage, index: number): string {
  const content = message.content ?? '';
  if (typeof content === 'string') return content;
  const texts = content.map((part) => {
    if (typeof part.text === 'string') return part.text;
    throw new ChatTemplateError(
      `messages[${index}].content: a part of type ${JSON.stringify(part.type)} is not text; this model reads text only.`,
    );
  });
  return texts.join('\n');
}

function withParsedArguments(call: unknown): unknown {
  const callee = (call as { function?: { arguments?: unknown } } | null)?.function;
  if (typeof callee?.arguments !== 'string') return call;
  try {
    const parsed: unknown = JSON.parse(callee.arguments);
    if (typeof parsed !== 'object' || parsed === null) return call;
    return { ...(call as object), function: { ...callee, arguments: parsed } };
  } catch {
    return call;
  }
}

/** Cuts the prompt where the last message's text ends; its trailing space stays if the template kept it. */
function cutAfterFinalMessage(text: string, messages: readonly ChatMessage[]): string {
  const content = String(messages.at(-1)?.content ?? '');
  const core = content.trim();
  if (core === '') {
    throw new ChatTemplateError('continue_final_message needs text in the last message; it has none.');
  }
  const start = text.lastIndexOf(core);
  if (start < 0) {
    throw new ChatTemplateError(
      'continue_final_message: the chat template does not write the last message as it was given.',
    );
  }
  const untilEnd = content.trimStart();
  const keepsSpace = text.startsWith(untilEnd, start);
  return text.slice(0, start + (keepsSpace ? untilEnd.length : core.length));
}

/** The prompt with reasoning opened at its end. */
function openReasoning(prompt: string, { begin, end }: BegunReasoning): string {
  const written = prompt.trimEnd();
  if (written.endsWith(end)) {
    throw new ChatTemplateError(
      'The last message ends within its reasoning, but the chat template was told not to reason.',
    );
  }
  return written.endsWith(begin) ? prompt : `${prompt}${begin}\n`;
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError && /call stack/.test(error.message)) return 'it is nested too deeply';
  return messageOf(error);
}
