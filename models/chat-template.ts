import { messageOf } from '../base/error-text.js';
import { field, says } from '../base/named-text.js';
import { asSentence } from '../base/sentences.js';
import { parseWritten, writtenJson } from '../base/written-json.js';
import { type ChatMessage, ChatTemplateError, type TemplateRefusal } from './chat-message.js';
import { readsParts } from './content-format.js';
import { JinjaError } from './jinja/errors.js';
import { globalsOf } from './jinja/globals.js';
import { type Allowance, Rendering, StepsError } from './jinja/rendering.js';
import { Template } from './jinja/template.js';
import type { Dict } from './jinja/values/dict.js';
import { fromJson } from './jinja/values/from-json.js';
import type { Value } from './jinja/values/value.js';
import { textUnits } from './json-units.js';
import { KnownToolLists, type KnownTools } from './known-tools.js';
import { placePictures, type TemplatePictures } from './placed-pictures.js';
import {
  hasParts,
  hasPictures,
  hasTextArguments,
  withContentParts,
  withParsedArguments,
  withTextContent,
} from './template-messages.js';
import { type GuardedRendering, SpecialTextGuard } from './tokenizer/special-text-guard.js';
import type { TextSegment, Tokenizer } from './tokenizer/tokenizer.js';

export {
  type ChatMessage,
  ChatTemplateError,
  type ChatTextPart,
  type TemplateRefusal,
} from './chat-message.js';
export type { TemplatePictures } from './placed-pictures.js';

export interface RenderOptions {
  /** Ends the prompt with the beginning of an assistant's message. */
  addGenerationPrompt?: boolean;
  /** Ends the prompt within the last message, so that the model continues it. Not together with addGenerationPrompt. */
  continueFinalMessage?: boolean;
  /** Reasoning with which the answer has begun; it follows what addGenerationPrompt writes. */
  begunReasoning?: BegunReasoning;
  /** Functions: a list, or one as JSON, which is remembered. */
  tools?: readonly unknown[] | string | null;
  /** Further variables of the template, or an object of them as JSON. They are treated as the user's text. */
  templateKwargs?: Readonly<Record<string, unknown>> | string;
  /** What stands for the pictures in the messages: parts of type 'image'. Absent: there are none. */
  pictures?: TemplatePictures;
  /** Replacements for the model's own tokens; trusted text. */
  bosToken?: string | null;
  eosToken?: string | null;
}

/**
 * Options for another thread. As JSON, functions cross over in a tenth of the time, and the thread knows those that it had before; numbers
 * of functions and variables cross as they were written.
 */
export function forAnotherThread({ tools, templateKwargs: kwargs, ...render }: RenderOptions): RenderOptions {
  return {
    ...render,
    ...(tools !== undefined && { tools: Array.isArray(tools) ? writtenJson(tools) : tools }),
    ...(kwargs !== undefined && { templateKwargs: writtenJson(kwargs) }),
  };
}

type Variables = Readonly<Record<string, unknown>>;

const variablesIn = (kwargs: RenderOptions['templateKwargs'] = {}): Variables =>
  typeof kwargs === 'string' ? (parseWritten(kwargs) as Variables) : kwargs;

/** Reasoning that the model goes on with. */
export interface BegunReasoning {
  /** Marks around reasoning; the first is written unless the template has written it. */
  begin: string;
  end: string;
  /** White space between the first mark and the text. */
  gap: string;
  text: string;
}

export interface RenderedPrompt {
  text: string;
  /**
   * The text as segments for Tokenizer.encodeSegments: special tokens of the template are tokens, a user's are text.
   */
  segments: TextSegment[];
}

export interface ChatTemplateOptions {
  /** Clock for strftime_now. */
  now?: () => Date;
}

/**
 * Most steps of a rendering: fifty for each of the ten thousand messages of a very long conversation. A template that
 * takes more probably loops without end, which would stop the server.
 */
export const MAX_TEMPLATE_STEPS = 500_000;
/** Most units that one step of a quick rendering may make. */
const QUICK_UNITS = 65_536;
/** Most units of a text that a template makes, besides those for its values. */
const MAX_TEXT_UNITS = 1_048_576;
/**
 * Most units that a template writes for each unit of a value: tojson writes up to six (\\u001f), and some values are
 * written twice.
 */
const UNITS_PER_UNIT = 16;

/** Names of variables that templateKwargs may not use. */
const RESERVED = new Set([
  ...['true', 'false', 'none', 'True', 'False', 'None', 'namespace', 'range', 'raise_exception'],
  ...['dict', 'cycler', 'joiner', 'lipsum'],
  ...['strftime_now', 'messages', 'add_generation_prompt', 'bos_token', 'eos_token', 'tools'],
]);

/** Keys of roles, of which some templates build special tokens. */
const ROLE_ONLY = new Set(['role']);

/** A model's chat template, parsed once and rendered as Hugging Face's apply_chat_template does. */
export class ChatTemplate {
  readonly #source: string | null;
  readonly #template: Template | null;
  /** True where contents that are lists of parts stay so. */
  readonly #readsParts: boolean;
  readonly #guard: SpecialTextGuard;
  readonly #inspected: ReadonlySet<string>;
  readonly #tokenizer: Pick<Tokenizer, 'bosToken' | 'eosToken' | 'controlTokenTexts'>;
  readonly #globals: ReadonlyMap<string, Value>;
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
    this.#globals = globalsOf(options.now ?? (() => new Date()));
    this.#toolLists = new KnownToolLists((tools) => this.#guard.see(tools, { unmarkedKeys: ROLE_ONLY }));
    try {
      this.#template = source === null ? null : new Template(source);
    } catch (error) {
      throw new ChatTemplateError(`The chat template cannot be parsed: ${asSentence(reasonOf(error))}`, {
        cause: error,
      });
    }
    this.#readsParts = this.#template !== null && readsParts(this.#template);
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
    return this.#render(messages, options, {
      steps: MAX_TEMPLATE_STEPS,
      unitsPerStep: Number.POSITIVE_INFINITY,
    });
  }

  /** Renders a prompt; null where that takes more than `steps` steps, or one step may be very long. */
  renderWithin(
    steps: number,
    messages: readonly ChatMessage[],
    options: RenderOptions,
  ): RenderedPrompt | null {
    try {
      return this.#render(messages, options, { steps, unitsPerStep: QUICK_UNITS });
    } catch (error) {
      if (error instanceof ChatTemplateError && error.cause instanceof StepsError) return null;
      throw error;
    }
  }

  #render(messages: readonly ChatMessage[], options: RenderOptions, allowance: Pace): RenderedPrompt {
    if (this.#template === null || this.#source === null) {
      throw new ChatTemplateError(
        'The model has no chat template: give it one (chat_template.jinja next to its tokenizer.json), ' +
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
    const kwargs = variablesIn(options.templateKwargs);
    for (const name of Object.keys(kwargs)) {
      if (RESERVED.has(name)) throw new ChatTemplateError(`chat_template_kwargs cannot set ${name}.`);
    }
    let first: unknown;
    for (const form of this.#formsOf(messages)) {
      try {
        return this.#renderMessages(form, { ...options, templateKwargs: kwargs }, allowance);
      } catch (error) {
        first ??= error;
        if (!isTypeError(error)) throw error;
      }
    }
    throw first;
  }

  /**
   * Messages in the form that the template takes, then in others: some templates join contents that are parts, or a call's
   * arguments, with texts, and take them as text.
   */
  *#formsOf(messages: readonly ChatMessage[]): Generator<ChatMessage[], void> {
    if (messages.some(hasPictures)) {
      if (!this.#readsParts)
        throw new ChatTemplateError(
          'The chat template of this model reads text only, and has no place for pictures.',
          {
            refusal: 'rule',
          },
        );
      yield messages.map(withContentParts).map(withParsedArguments);
      return;
    }
    const plain = messages.map(withTextContent);
    if (this.#readsParts && messages.some(hasParts)) {
      yield messages.map(withContentParts).map(withParsedArguments);
    }
    yield plain.map(withParsedArguments);
    if (plain.some(hasTextArguments)) yield plain;
  }

  #renderMessages(messages: ChatMessage[], options: RenderOptions, allowance: Pace): RenderedPrompt {
    const rendering = this.#guard.open(this.#source!);
    const { known, tools } = this.#readTools(options.tools ?? null);
    const given = this.#protect(
      rendering,
      {
        messages,
        tools,
        kwargs: variablesIn(options.templateKwargs),
        begun: options.begunReasoning?.text ?? '',
      },
      known,
    );
    const units = MAX_TEXT_UNITS + UNITS_PER_UNIT * (textUnits(given) + (known?.textUnits ?? 0));
    const variables = this.#variables(given.kwargs, {
      messages: given.messages,
      tools: known === null ? given.tools : known.value,
      add_generation_prompt: options.addGenerationPrompt ?? false,
      bos_token: options.bosToken ?? this.#tokenizer.bosToken ?? '',
      eos_token: options.eosToken ?? this.#tokenizer.eosToken ?? '',
    });
    let text: string;
    try {
      text = this.#template!.render(
        new Rendering(variables, {
          allowance: { ...allowance, units },
          marks: rendering.marks,
          written: known?.written,
        }),
      );
    } catch (error) {
      throw refusal(error);
    }
    if (options.continueFinalMessage) text = cutAfterFinalMessage(text, given.messages);
    if (options.begunReasoning) text = openReasoning(text, options.begunReasoning) + given.begun;
    const written = rendering.segments(text);
    const segments = options.pictures === undefined ? written : placePictures(written, options.pictures);
    return { text: segments.map((segment) => segment.text).join(''), segments };
  }

  /** Functions as they are known, or as a list where their strings have to be protected each time. */
  #readTools(tools: readonly unknown[] | string | null): { known: KnownTools | null; tools: unknown } {
    if (typeof tools !== 'string') return { known: null, tools };
    try {
      const known = this.#toolLists.of(tools);
      return known.seen.isAtRisk ? { known: null, tools: parseWritten(tools) } : { known, tools: null };
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

  /** Variables of a rendering; those of the request cannot be functions. */
  #variables(kwargs: Variables, own: Variables): Map<string, Value> {
    const variables = new Map<string, Value>([['documents', null]]);
    // Read as one object, which knows how its numbers were written.
    const given = fromJson(kwargs) as Dict;
    for (const name of Object.keys(kwargs)) variables.set(name, given.getText(name) ?? null);
    for (const [name, value] of this.#globals) variables.set(name, value);
    for (const [name, value] of Object.entries(own)) variables.set(name, fromJson(value));
    return variables;
  }
}

/** Limits of a rendering but for those that follow from its values. */
type Pace = Omit<Allowance, 'units'>;

const isTypeErrorOf = (error: unknown) => error instanceof JinjaError && error.kind === 'TypeError';
/** True where a template failed since a value was of another type than it takes. */
const isTypeError = (error: unknown) => error instanceof ChatTemplateError && isTypeErrorOf(error.cause);

function refusal(error: unknown): ChatTemplateError {
  return new ChatTemplateError(
    says`The chat template refused the ${field('messages')}: ${asSentence(reasonOf(error))}`,
    { cause: error, refusal: refusalOf(error) },
  );
}

/** Limits are no refusals. */
function refusalOf(error: unknown): TemplateRefusal | null {
  if (!(error instanceof JinjaError) || error.kind === 'RecursionError') return null;
  return error.kind === 'TemplateError' ? 'rule' : 'operation';
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

/** Cuts the prompt where the last message's text ends; its trailing space stays if the template kept it. */
function cutAfterFinalMessage(text: string, messages: readonly ChatMessage[]): string {
  const last = messages.at(-1)?.content ?? '';
  const content = typeof last === 'string' ? last : (last.at(-1)?.text ?? '');
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
function openReasoning(prompt: string, { begin, end, gap }: BegunReasoning): string {
  const written = prompt.trimEnd();
  if (written.endsWith(end)) {
    throw new ChatTemplateError(
      'The last message ends within its reasoning, but the chat template was told not to reason.',
    );
  }
  return written.endsWith(begin) ? prompt : prompt + begin + gap;
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError && /call stack/.test(error.message)) return 'it is nested too deeply';
  return messageOf(error);
}
