/** A token that is found in the text before the model splits it. */
export interface AddedToken {
  id: number;
  content: string;
  /** True for control tokens, such as <|im_start|>, which only the template or the operator may write. */
  special: boolean;
  /** True where the token must not touch a word character on either side. */
  singleWord: boolean;
  /** True where the token takes the white space before it along; stripRight: after it. */
  stripLeft: boolean;
  stripRight: boolean;
}

/** A part of a text: one added token, or plain text for the model. */
export type TextSection = { token: AddedToken } | { text: string; start: number };

interface TrieNode {
  next: Map<number, TrieNode>;
  token: AddedToken | null;
}

const WORD_CHARACTER = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u;
const WHITE_SPACE = /\p{White_Space}/u;

/** Splits text at added tokens: leftmost match, longest first. `search` maps each search text to its token. */
export class AddedTokenFinder {
  readonly #root: TrieNode = { next: new Map(), token: null };
  /** Pattern of the units with which tokens begin; null: there are no tokens. */
  readonly #beginning: RegExp | null;

  constructor(search: Iterable<readonly [string, AddedToken]>) {
    for (const [content, token] of search) {
      if (content.length === 0) continue;
      let node = this.#root;
      for (let i = 0; i < content.length; i++) {
        const unit = content.charCodeAt(i);
        let child = node.next.get(unit);
        if (child === undefined) {
          child = { next: new Map(), token: null };
          node.next.set(unit, child);
        }
        node = child;
      }
      node.token ??= token;
    }
    this.#beginning = unitPattern(this.#root.next.keys());
  }

  /** False where the text has no token for certain, which is quick to tell: no unit of it begins one. */
  mayFind(text: string): boolean {
    return this.#nextBeginning(text, 0) !== null;
  }

  /**
   * Splits a text. @param mayBeSpecial returns whether [start, end) may be a special token; otherwise it is
   * plain text.
   */
  split(text: string, mayBeSpecial: (start: number, end: number) => boolean): TextSection[] {
    const sections: TextSection[] = [];
    let textStart = 0;
    let position = 0;
    while (position < text.length) {
      const match = this.#matchAt(text, position, mayBeSpecial);
      if (match === null) {
        // Most units begin no token: the pattern goes over them faster than a look at each.
        const next = this.#nextBeginning(text, position + 1);
        if (next === null) break;
        position = next;
        continue;
      }
      let textEnd = position;
      if (match.token.stripLeft) {
        while (textEnd > textStart && WHITE_SPACE.test(text.charAt(textEnd - 1))) textEnd--;
      }
      if (textEnd > textStart) sections.push({ text: text.slice(textStart, textEnd), start: textStart });
      sections.push({ token: match.token });
      position = match.end;
      if (match.token.stripRight) {
        while (position < text.length && WHITE_SPACE.test(text.charAt(position))) position++;
      }
      textStart = position;
    }
    if (textStart < text.length) sections.push({ text: text.slice(textStart), start: textStart });
    return sections;
  }

  /** Place of the next unit that begins a token; null: there is none. */
  #nextBeginning(text: string, from: number): number | null {
    if (this.#beginning === null) return null;
    this.#beginning.lastIndex = from;
    return this.#beginning.test(text) ? this.#beginning.lastIndex - 1 : null;
  }

  #matchAt(
    text: string,
    start: number,
    mayBeSpecial: (start: number, end: number) => boolean,
  ): { token: AddedToken; end: number } | null {
    let node = this.#root.next.get(text.charCodeAt(start));
    let found: { token: AddedToken; end: number } | null = null;
    for (let end = start + 1; node !== undefined; end++) {
      const token = node.token;
      if (
        token !== null &&
        (!token.special || mayBeSpecial(start, end)) &&
        (!token.singleWord || standsAlone(text, start, end))
      ) {
        found = { token, end };
      }
      node = end < text.length ? node.next.get(text.charCodeAt(end)) : undefined;
    }
    return found;
  }
}

/** Pattern, with a place to go on from, of any of these UTF-16 units; null: of none. */
export function unitPattern(units: Iterable<number>): RegExp | null {
  const escaped = Array.from(units, (unit) => `\\u${unit.toString(16).padStart(4, '0')}`);
  return escaped.length === 0 ? null : new RegExp(`[${escaped.join('')}]`, 'g');
}

function standsAlone(text: string, start: number, end: number): boolean {
  const before = start > 0 && WORD_CHARACTER.test(text.charAt(start - 1));
  return !before && !(end < text.length && WORD_CHARACTER.test(text.charAt(end)));
}
