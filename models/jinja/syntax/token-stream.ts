import { JinjaError } from '../errors.js';
import { type Token, type TokenType, tokensOf } from './lexer.js';

/** Deepest nesting of brackets and of blocks; Python's parser ends before. */
const MAX_NESTING = 100;

/** The tokens of a template as they are parsed. */
export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;

  constructor(source: string) {
    this.#tokens = tokensOf(source);
  }

  get current(): Token {
    return this.#tokens[this.#at]!;
  }

  get following(): Token {
    return this.#tokens[this.#at + 1] ?? this.#tokens.at(-1)!;
  }

  /** Takes the current token. */
  next(): Token {
    const token = this.current;
    if (token.type !== 'eof') this.#at++;
    return token;
  }

  is(type: TokenType, text?: string): boolean {
    return matches(this.current, type, text);
  }

  isOperator(text: string): boolean {
    return this.is('operator', text);
  }

  isName(text: string): boolean {
    return this.is('name', text);
  }

  /** True where the next two tokens are these names. */
  areNames(first: string, second: string): boolean {
    return this.isName(first) && matches(this.following, 'name', second);
  }

  skipIf(type: TokenType, text?: string): boolean {
    if (!this.is(type, text)) return false;
    this.next();
    return true;
  }

  expect(type: TokenType, text?: string): Token {
    if (this.is(type, text)) return this.next();
    const wanted = text ?? WORDS[type] ?? type;
    if (this.current.type === 'eof') this.fail(`unexpected end of template, expected '${wanted}'`);
    this.fail(`expected token '${wanted}', got '${this.described()}'`);
  }

  described({ type, text }: Token = this.current): string {
    return type === 'name' || type === 'operator' ? text : (WORDS[type] ?? type);
  }

  fail(message: string, line = this.current.line): never {
    throw new JinjaError('TemplateSyntaxError', `${message} (line ${line})`);
  }

  /** Parses something within something else. */
  nested<T>(parse: () => T): T {
    if (++this.#nesting > MAX_NESTING) this.fail(`it is nested too deeply, more than ${MAX_NESTING} times`);
    const parsed = parse();
    this.#nesting--;
    return parsed;
  }
}

const matches = (token: Token, type: TokenType, text?: string) =>
  token.type === type && (text === undefined || token.text === text);

const WORDS: Partial<Record<TokenType, string>> = {
  block_begin: 'begin of statement block',
  block_end: 'end of statement block',
  variable_begin: 'begin of print statement',
  variable_end: 'end of print statement',
  data: 'template data / text',
  eof: 'end of template',
};
