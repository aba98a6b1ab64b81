import { JinjaError } from '../errors.js';
import { SPACES } from '../text/character-classes.js';
import type { Int } from '../values/numbers.js';
import { toInt } from '../values/numbers.js';
import { unescaped } from './string-literal.js';

export type TokenType =
  | 'data'
  | 'variable_begin'
  | 'variable_end'
  | 'block_begin'
  | 'block_end'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'eof';

export interface Token {
  type: TokenType;
  /** Text of data, a name, a string (without its quotes and escapes) or an operator. */
  text: string;
  /** Value of a number. */
  number: Int;
  line: number;
}

/** Text of a tag up to its end, where `-` takes the white space that follows, and a block's end takes one line end. */
const S = `[${SPACES}]`;
const BLOCK_END = new RegExp(`\\+%\\}|-%\\}${S}*|%\\}\\n?`, 'y');
const VARIABLE_END = new RegExp(`-\\}\\}${S}*|\\}\\}`, 'y');
const COMMENT_END = new RegExp(`\\+#\\}|-#\\}${S}*|#\\}\\n?`, 'g');
const RAW_BEGIN = new RegExp(`\\{%([-+]?)${S}*raw${S}*(?:-%\\}${S}*|%\\})`, 'y');
const RAW_END = new RegExp(`\\{%([-+]?)${S}*endraw${S}*(?:\\+%\\}|-%\\}${S}*|%\\}\\n?)`, 'g');
const BEGIN = /\{[{%#]/g;

const WHITE_SPACE = new RegExp(`${S}+`, 'y');
const FLOAT = /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy;
const INTEGER = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const NAME = /[\p{XID_Start}_][\p{XID_Continue}]*/uy;
const STRING = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[+\-/*%~[\](){}><=.:|,;]/y;
/** In the order in which they are tried. */
const PATTERNS: readonly { type: TokenType; pattern: RegExp }[] = [
  { type: 'float', pattern: FLOAT },
  { type: 'integer', pattern: INTEGER },
  { type: 'name', pattern: NAME },
  { type: 'string', pattern: STRING },
  { type: 'operator', pattern: OPERATOR },
];
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** Splits a template into tokens, as Jinja2 does with trim_blocks and lstrip_blocks. @throws JinjaError */
export function tokensOf(source: string): Token[] {
  return new Lexer(normalized(source)).run();
}

/** Lines end in \n, and the last line end is dropped. */
function normalized(source: string): string {
  const text = source.replace(/\r\n?/g, '\n');
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  /** True where what was read last ends in a line end. */
  #isLineStart = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#readData();
    this.#add('eof', '');
    return this.#tokens;
  }

  #add(type: TokenType, text: string, number: Int = 0): void {
    this.#tokens.push({ type, text, number, line: this.#line });
  }

  #fail(message: string): never {
    throw new JinjaError('TemplateSyntaxError', `${message} (line ${this.#line})`);
  }

  /** Goes on to a place of the source. */
  #advance(to: number): void {
    for (let i = this.#at; i < to; i++) if (this.#source.charCodeAt(i) === 10) this.#line++;
    if (to > this.#at) this.#isLineStart = this.#source[to - 1] === '\n';
    this.#at = to;
  }

  /** Matches at the current place. */
  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source);
  }

  /** Reads the text up to the next tag, and the tag. */
  #readData(): void {
    const begin = this.#match(BEGIN);
    if (begin === null) {
      this.#addData(this.#source.slice(this.#at));
      this.#advance(this.#source.length);
      return;
    }
    const text = this.#source.slice(this.#at, begin.index);
    RAW_BEGIN.lastIndex = begin.index;
    const raw = RAW_BEGIN.exec(this.#source);
    const control = raw?.[1] ?? /[-+]?/.exec(this.#source.slice(begin.index + 2, begin.index + 3))![0];
    const isVariable = begin[0] === '{{';
    this.#addData(this.#withoutSpace(text, control, isVariable));
    const end = raw === null ? begin.index + 2 + control.length : begin.index + raw[0].length;
    this.#advance(end);
    if (raw !== null) this.#readRaw();
    else if (begin[0] === '{#') this.#readComment();
    else this.#readTag(isVariable);
  }

  /** Text before a tag without the white space that its tag takes away. */
  #withoutSpace(text: string, control: string, isVariable: boolean): string {
    if (control === '-') return text.replace(TRAILING_SPACE, '');
    if (control === '+' || isVariable) return text;
    const lineStart = text.lastIndexOf('\n') + 1;
    const isLine = lineStart > 0 || this.#isLineStart;
    return isLine && ONLY_SPACE.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
  }

  #addData(text: string): void {
    if (text !== '') this.#add('data', text);
  }

  #readComment(): void {
    const end = this.#match(COMMENT_END);
    if (end === null) this.#fail('Missing end of comment tag');
    this.#advance(end.index + end[0].length);
  }

  #readRaw(): void {
    const end = this.#match(RAW_END);
    if (end === null) this.#fail('Missing end of raw directive');
    this.#addData(this.#withoutSpace(this.#source.slice(this.#at, end.index), end[1]!, false));
    this.#advance(end.index + end[0].length);
  }

  #readTag(isVariable: boolean): void {
    const kind = isVariable ? 'variable' : 'block';
    this.#add(`${kind}_begin`, '');
    const end = isVariable ? VARIABLE_END : BLOCK_END;
    const open: string[] = [];
    while (this.#at < this.#source.length) {
      const closed = open.length === 0 ? this.#match(end) : null;
      if (closed !== null) {
        this.#add(`${kind}_end`, '');
        this.#advance(this.#at + closed[0].length);
        return;
      }
      this.#readToken(open);
    }
  }

  #readToken(open: string[]): void {
    const space = this.#match(WHITE_SPACE);
    if (space !== null) {
      this.#advance(this.#at + space[0].length);
      return;
    }
    const { type, text } = this.#nextToken();
    if (type === 'operator') this.#balance(open, text);
    if (type === 'string') this.#takeString(text);
    else if (type === 'integer') this.#take(type, text, toInt(BigInt(text.replaceAll('_', ''))));
    else this.#take(type, text);
  }

  #nextToken(): { type: TokenType; text: string } {
    for (const { type, pattern } of PATTERNS) {
      const found = this.#match(pattern);
      if (found !== null) return { type, text: found[0] };
    }
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!);
    this.#fail(`unexpected character ${JSON.stringify(character)}`);
  }

  #take(type: TokenType, text: string, number: Int = 0): void {
    this.#add(type, text, number);
    this.#advance(this.#at + text.length);
  }

  #takeString(literal: string): void {
    const text = unescaped(literal.slice(1, -1));
    if (text === null) this.#fail('a string has an escape that is cut short, or that is not available');
    this.#add('string', text);
    this.#advance(this.#at + literal.length);
  }

  /** Ends of tags count only where all brackets are closed. */
  #balance(open: string[], operator: string): void {
    const closing = CLOSING[operator];
    if (closing !== undefined) {
      open.push(closing);
      return;
    }
    if (!')]}'.includes(operator)) return;
    const expected = open.pop();
    if (expected === undefined) this.#fail(`unexpected '${operator}'`);
    if (expected !== operator) this.#fail(`unexpected '${operator}', expected '${expected}'`);
  }
}

const TRAILING_SPACE = new RegExp(`${S}+$`);
const ONLY_SPACE = new RegExp(`^${S}+$`);
