import { CHANNEL, type HarmonyToken } from './tokens.js';

/** What a message is, as its header says. */
export type MessageKind = { type: 'content' | 'reasoning' } | { type: 'call'; name: string };

/** Prefix of recipients that are functions of the request. */
export const FUNCTIONS = 'functions.';
/** Recipients that are no tools. */
const PEOPLE: ReadonlySet<string> = new Set(['assistant', 'user', 'all']);
/** Most UTF-16 units of a header: names of functions have 64 at most. */
const MAX_HEADER_UNITS = 400;
/** Words with which the text before a channel may begin, where the author is known. */
const FIRST_WORDS = ['to=', 'assistant'];

/**
 * Header of a message: author, recipient, channel and type of its content. The recipient may stand at either place:
 *
 *   assistant<|channel|>commentary to=functions.f <|constrain|>json
 *   assistant to=functions.f<|channel|>commentary json
 */
export class MessageHeader {
  readonly #hasAuthor: boolean;
  /** Text before the channel, with the author. */
  #before = '';
  /** Text from the channel on; null: there is none yet. */
  #channel: string | null = null;
  #units = 0;

  /** @param hasAuthor true where the author is known: the prompt has written it, or the message has begun without one */
  constructor({ hasAuthor }: { hasAuthor: boolean }) {
    this.#hasAuthor = hasAuthor;
  }

  /** Units that it takes in the answer's text. */
  get units(): number {
    return this.#units;
  }

  /** True as long as it may be an answer without any header. */
  get isPlain(): boolean {
    return this.#hasAuthor && this.#channel === null;
  }

  /** True where it is a text, or has grown so long that it cannot be a header. */
  get isText(): boolean {
    if (this.#units > MAX_HEADER_UNITS) return true;
    const text = this.#before.trimStart();
    return this.isPlain && !FIRST_WORDS.some((word) => word.startsWith(text) || text.startsWith(word));
  }

  addText(text: string): void {
    if (this.#channel === null) this.#before += text;
    else this.#channel += text;
    this.#units += text.length;
  }

  /** Adds a channel's or a type's token. @param units that it takes in the answer's text */
  addToken(token: HarmonyToken, units: number): void {
    if (this.#channel !== null) this.#channel += ' ';
    else if (token === CHANNEL) this.#channel = '';
    // The type may follow the recipient without a space: to=functions.f<|constrain|>json
    else this.#before += ' ';
    this.#units += units;
  }

  /** @param functions names of the request's functions; null: none may be called */
  kind(functions: ReadonlySet<string> | null): MessageKind {
    const [channel, rest] = this.#parts();
    const recipient = recipientIn(rest);
    if (recipient === null || PEOPLE.has(recipient)) return kindOf(channel);
    const name = functionNamed(recipient, functions);
    return name === null ? { type: 'reasoning' } : { type: 'call', name };
  }

  /** What a message is that ends, or grows too long, within its header; as openai-harmony reads it where it is not strict. */
  broken(): { kind: MessageKind; text: string } {
    if (this.isPlain) return { kind: { type: 'content' }, text: this.#before };
    const [channel, rest] = this.#parts();
    return { kind: kindOf(channel), text: rest.trim() };
  }

  /** The channel, and the text without it and the author. */
  #parts(): [string, string] {
    const [, channel, rest] = /^([^\s<]*)([\s\S]*)$/.exec(this.#channel ?? '')!;
    const before = this.#before.trimStart();
    return [channel!, before.replace(this.#hasAuthor ? /^assistant(?=\s|$)/ : /^\S*/, '') + rest!];
  }
}

function kindOf(channel: string): MessageKind {
  return { type: channel === 'analysis' ? 'reasoning' : 'content' };
}

function recipientIn(text: string): string | null {
  for (const word of text.split(/\s+/)) {
    if (word.startsWith('to=') && word.length > 3) return word.slice(3);
    if (word.startsWith(FUNCTIONS)) return word;
  }
  return null;
}

/** The function that is called; null: the recipient is a tool that the request does not have. */
function functionNamed(recipient: string, functions: ReadonlySet<string> | null): string | null {
  if (functions === null) return null;
  if (!recipient.startsWith(FUNCTIONS)) return functions.has(recipient) ? recipient : null;
  const name = recipient.slice(FUNCTIONS.length);
  return name === '' ? null : name;
}
