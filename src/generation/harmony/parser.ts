import { MarkerFinder } from '../tools/marker-finder.js';
import { PartList } from '../tools/part-list.js';
import type { AnswerParser, AnswerPart } from '../tools/types.js';
import { MessageHeader, type MessageKind } from './header.js';
import {
  CHANNEL,
  CONSTRAIN,
  HARMONY_TOKENS,
  type HarmonyToken,
  MESSAGE,
  START,
  tokenOfMark,
} from './tokens.js';

/**
 * Where the prompt ends, and the answer goes on:
 *
 *   message     before a message, or after its author
 *   analysis    within reasoning
 *   final       within the answer for the user
 */
export type HarmonyStart = 'message' | 'analysis' | 'final';

export interface HarmonyOptions {
  start: HarmonyStart;
  /** Names of the functions that may be called; null: none. */
  functions: ReadonlySet<string> | null;
  /** True where units of their own stand for special tokens, false where the text spells them. */
  isMarked: boolean;
}

/** Between two messages of one kind. */
const GAP = '\n\n';

/**
 * Reads an answer in the harmony format, a list of messages:
 *
 *   <|channel|>analysis<|message|>Hm.<|end|>                                              reasoning "Hm."
 *   <|start|>assistant<|channel|>commentary<|message|>I look.<|end|>                      content "I look."
 *   <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>     call f
 *   <|start|>assistant<|channel|>final<|message|>Yes.<|return|>                           content "Yes."
 *
 * A message to a tool that the request does not have, such as the model's own browser and python, is
 * reasoning: they are never run. Other channels are content. Text outside of messages is content, but for
 * white space.
 */
export class HarmonyParser implements AnswerParser {
  readonly #lexer: HarmonyLexer;
  readonly #functions: HarmonyOptions['functions'];
  readonly #isMarked: boolean;
  readonly #parts = new PartList();
  #state: 'between' | 'header' | 'body' = 'header';
  #header = new MessageHeader({ hasAuthor: true });
  #kind: MessageKind = { type: 'content' };
  /** White space between messages. */
  #space = '';
  /** Kinds of text that messages so far had, since the last call. */
  readonly #written = new Set<AnswerPart['type']>();
  /** True for a message that has no text yet. */
  #isFresh = true;

  constructor({ start, functions, isMarked }: HarmonyOptions) {
    this.#lexer = new HarmonyLexer(isMarked);
    this.#functions = functions;
    this.#isMarked = isMarked;
    if (start !== 'message') this.#begin({ type: start === 'analysis' ? 'reasoning' : 'content' });
  }

  /** True where the next text is reasoning, false where it is not; null: not known yet. */
  get isReasoning(): boolean | null {
    return this.#state === 'body' ? this.#kind.type === 'reasoning' : null;
  }

  get held(): number {
    const { held } = this.#lexer;
    if (this.#state === 'header') return this.#header.units + held;
    if (this.#state === 'between') return this.#space.length + held;
    return this.#kind.type === 'content' ? held : 0;
  }

  push(text: string): AnswerPart[] {
    for (let i = 0; i < text.length; i++) this.#step(text.charAt(i));
    return this.#parts.take();
  }

  end(): AnswerPart[] {
    this.#text(this.#lexer.flush());
    if (this.#state === 'header' && this.#header.isPlain) this.#unfold({ isMade: false });
    if (this.#state === 'body') this.#finish();
    return this.#parts.take();
  }

  #step(unit: string): void {
    const { text, token } = this.#lexer.step(unit);
    this.#text(text);
    if (token !== null) this.#token(token);
  }

  #text(text: string): void {
    if (text === '') return;
    if (this.#state === 'body') this.#write(text);
    else if (this.#state === 'header') {
      this.#header.addText(text);
      if (this.#header.isText) this.#unfold({ isMade: !this.#header.isPlain });
    } else {
      this.#space += text;
      if (text.trim() === '') return;
      this.#begin({ type: 'content' });
      this.#write(this.#space);
    }
  }

  #token(token: HarmonyToken): void {
    if (token === START) this.#open({ hasAuthor: false });
    else if (token === CHANNEL || token === CONSTRAIN) {
      if (this.#state !== 'header') {
        if (token === CONSTRAIN) return;
        this.#open({ hasAuthor: true });
      }
      this.#header.addToken(token, this.#isMarked ? 1 : token.length);
    } else if (token === MESSAGE) {
      if (this.#state === 'header') this.#begin(this.#header.kind(this.#functions));
      else if (this.#state === 'between') this.#begin({ type: 'content' });
    } else {
      if (this.#state === 'header') this.#unfold({ isMade: true });
      if (this.#state === 'body') this.#finish();
      this.#state = 'between';
      this.#space = '';
    }
  }

  /** Opens a header, also where the message before lacks its end. */
  #open(options: { hasAuthor: boolean }): void {
    if (this.#state === 'body') this.#finish();
    this.#state = 'header';
    this.#header = new MessageHeader(options);
  }

  #begin(kind: MessageKind): void {
    this.#state = 'body';
    this.#kind = kind;
    this.#isFresh = true;
    if (kind.type !== 'call') return;
    this.#written.clear();
    this.#parts.addCall(kind.name);
  }

  /**
   * Makes a message of an invalid header.
   * @param isMade true where its text is not the end of the answer so far
   */
  #unfold({ isMade }: { isMade: boolean }): void {
    const { kind, text } = this.#header.broken();
    this.#begin(kind);
    if (text !== '') this.#write(text, isMade);
  }

  #write(text: string, isMade = false): void {
    const { type } = this.#kind;
    if (type === 'call') {
      this.#isFresh &&= text.trim() === '';
      this.#parts.add('arguments', text);
      return;
    }
    if (this.#isFresh && this.#written.has(type)) this.#add(type, GAP, true);
    this.#isFresh = false;
    this.#written.add(type);
    this.#add(type, text, isMade);
  }

  #add(type: 'content' | 'reasoning', text: string, isMade: boolean): void {
    if (isMade && type === 'content') this.#parts.addMade(text);
    else this.#parts.add(type, text);
  }

  #finish(): void {
    if (this.#kind.type === 'call' && this.#isFresh) this.#parts.add('arguments', '{}');
  }
}

/** Text, and the special token after it. */
interface Lexeme {
  text: string;
  token: HarmonyToken | null;
}

/** Separates the special tokens of an answer from its text, unit by unit. */
class HarmonyLexer {
  readonly #isMarked: boolean;
  readonly #finder = new MarkerFinder(HARMONY_TOKENS);
  #isBehindHigh = false;

  /** @param isMarked true where units of their own stand for special tokens, false where these are spelled in the text */
  constructor(isMarked: boolean) {
    this.#isMarked = isMarked;
  }

  step(unit: string): Lexeme {
    if (!this.#isMarked) {
      const { text, marker } = this.#finder.step(unit);
      return { text, token: marker as HarmonyToken | null };
    }
    const token = this.#isBehindHigh ? null : tokenOfMark(unit);
    const code = unit.charCodeAt(0);
    this.#isBehindHigh = code >= 0xd800 && code < 0xdc00;
    return token === null ? { text: unit, token } : { text: '', token };
  }

  /** Number of units of text held back. */
  get held(): number {
    return this.#finder.held;
  }

  /** Returns the text held back. */
  flush(): string {
    return this.#finder.flush();
  }
}

/**
 * Reads messages whose content may have calls in it, where a text and not the template describes the
 * functions to the model: it then writes calls as that text asks for.
 */
export class TextCallsParser implements AnswerParser {
  readonly #messages: AnswerParser;
  readonly #calls: AnswerParser;

  constructor(messages: AnswerParser, calls: AnswerParser) {
    this.#messages = messages;
    this.#calls = calls;
  }

  get held(): number {
    return this.#messages.held + this.#calls.held;
  }

  push(text: string): AnswerPart[] {
    return this.#read(this.#messages.push(text));
  }

  end(): AnswerPart[] {
    return [...this.#read(this.#messages.end()), ...this.#calls.end()];
  }

  #read(parts: readonly AnswerPart[]): AnswerPart[] {
    const read = new PartList();
    for (const part of parts) read.append(part.type === 'content' ? this.#calls.push(part.text) : [part]);
    return read.take();
  }
}
