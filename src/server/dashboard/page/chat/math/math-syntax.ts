import { Hooks, type MarkedOptions, type Tokens } from 'marked';

/** A formula in a text, in TeX. */
export interface MathToken extends Tokens.Generic {
  type: 'math';
  tex: string;
  /** True where it stands in lines of its own. */
  isDisplay: boolean;
}

/** Characters of the longest formula within a line, and in lines of its own; a longer one stays text. */
export const MAX_INLINE = 1000;
export const MAX_DISPLAY = 10_000;
/** Characters within which the beginning of a formula is looked for at once, so that many of them cost no more than the text's length. */
const LOOK_AHEAD = 500;

/*
 * Any pair after a backslash is one sign, so that `\\)` ends nothing. A formula has no backquotes, which are code, and no second beginning of its own kind: so what
 * is read of one that does not end is read once, however many begin.
 */
const INLINE = `{1,${MAX_INLINE}}`;
const DISPLAY = `{1,${MAX_DISPLAY}}`;
const PAREN = new RegExp(String.raw`^\\\(((?:[^\\\x60]|\\[^()\x60])${INLINE})\\\)`);
const BRACKET = new RegExp(String.raw`^\\\[((?:[^\\\x60]|\\[^[\]\x60])${DISPLAY})\\\]`);
const DOLLARS = new RegExp(String.raw`^\$\$((?:[^\\\x60$]|\\[^\x60])${DISPLAY})\$\$`);
const DOLLAR = new RegExp(String.raw`^\$((?:[^\\\x60$\n]|\\[^\x60\n])${INLINE})\$(?!\d)`);

const BLANK_LINE = /\n[ \t]*\n/;
/** What a single dollar sign may not stand right after. */
const NOT_BEFORE = /[\p{L}\p{N}_$\\]/u;
const BEGINNING = /(?<![\p{L}\p{N}_$\\])\$|\\[([]/u;
const BLOCK_BEGINNING = /\n {0,3}(?:\$\$|\\\[)/;

const EXTENSIONS: NonNullable<MarkedOptions['extensions']> = {
  renderers: {},
  childTokens: {},
  // The last character of a long text costs the text's length: with so much of it in front it is taken for a space.
  inline: [
    (src, tokens) => {
      const before = tokens.at(-1)?.raw ?? '';
      return inlineMath(src, before.length > LOOK_AHEAD ? '' : (before.at(-1) ?? ''));
    },
  ],
  block: [blockMath],
  startInline: [
    (src) => {
      const found = src.slice(0, LOOK_AHEAD).search(BEGINNING);
      return found >= 0 || src.length < LOOK_AHEAD ? found : LOOK_AHEAD - 1;
    },
  ],
  startBlock: [
    function (src) {
      const at = src.slice(0, LOOK_AHEAD).search(BLOCK_BEGINNING);
      const cuts = numCuts.get(this.lexer) ?? 0;
      if (at < 0 || cuts === MAX_CUTS || blockMath(src.slice(at + 1)) === undefined) return -1;
      numCuts.set(this.lexer, cuts + 1);
      return at;
    },
  ],
};

/** Paragraphs of a text that formulas may cut; for each the parser reads the rest of it. */
const MAX_CUTS = 200;
const numCuts = new WeakMap<object, number>();

class MathHooks extends Hooks {
  /** Signs of a formula are no emphasis. */
  override emStrongMask(src: string): string {
    return withoutMath(src);
  }
}

/**
 * What the Markdown parser reads besides: formulas, before it takes their signs for its own. `\(...\)` and `$...$` stand within a line, `\[...\]` and
 * `$$...$$` also in lines of their own.
 */
export const MATH_SYNTAX: MarkedOptions = { extensions: EXTENSIONS, hooks: new MathHooks() };

/** @param before the character in front; '' for none */
function inlineMath(src: string, before: string): MathToken | undefined {
  const paren = PAREN.exec(src);
  if (paren !== null) return math(paren, false);
  const display = BRACKET.exec(src) ?? DOLLARS.exec(src);
  if (display !== null) return math(display, true);
  const dollar = DOLLAR.exec(src);
  if (dollar === null || NOT_BEFORE.test(before)) return undefined;
  const [raw, tex] = dollar as unknown as [string, string];
  return isPrice(tex, src[raw.length] ?? '') ? undefined : math(dollar, false);
}

/**
 * True where two dollar signs are no delimiters: a space inside of one, a letter after them ("$HOME and $PATH"), or an amount that words follow
 * ("$5, which are 4 €, and 10$").
 */
function isPrice(tex: string, after: string): boolean {
  if (/^\s|\s$/.test(tex)) return true;
  const isTex = /[\\^_{=]/.test(tex);
  if (/\w/.test(after)) return !isTex && tex.length > 1;
  return !isTex && /^\d/.test(tex) && /[a-z]{3}/i.test(tex);
}

function blockMath(src: string): MathToken | undefined {
  const indent = /^ {0,3}(?=\$\$|\\\[)/.exec(src)?.[0];
  if (indent === undefined) return undefined;
  const rest = src.slice(indent.length);
  const found = BRACKET.exec(rest) ?? DOLLARS.exec(rest);
  if (found === null) return undefined;
  // With more on its line it is part of a paragraph.
  const end = /^[ \t]*(?:\n|$)/.exec(rest.slice(found[0].length))?.[0];
  const read = end === undefined ? undefined : math(found, true);
  return read && { ...read, raw: `${indent}${read.raw}${end}` };
}

function math([raw, tex]: RegExpExecArray, isDisplay: boolean): MathToken | undefined {
  const trimmed = tex!.trim();
  if (trimmed === '' || BLANK_LINE.test(tex!)) return undefined;
  return { type: 'math', raw, tex: trimmed, isDisplay };
}

/** The text with its formulas made unreadable, character by character. */
export function withoutMath(src: string): string {
  const pieces: string[] = [];
  let before = '';
  let rest = src;
  const take = (length: number, piece = rest.slice(0, length)) => {
    pieces.push(piece);
    before = piece.at(-1) ?? before;
    rest = rest.slice(length);
  };
  for (;;) {
    const at = rest.search(BEGINNING);
    if (at < 0) return pieces.join('') + rest;
    take(at);
    const length = inlineMath(rest, before)?.raw.length;
    if (length === undefined) take(1);
    else take(length, 'a'.repeat(length));
  }
}
