import { atomsOf, type Branch, readPattern } from './linear-patterns.js';

/** Characters that are looked at: a border is between two of ASCII. */
const CHARACTERS = 128;

/**
 * Places of a text at which it may be cut before its words are looked for: the words of both parts are then,
 * one after the other, those of the whole text, whatever else the text has. Proved from the patterns, for
 * pairs of ASCII characters.
 *
 *   text     ... a | b ...     cut between a and b
 *   words    ..., [..a], [b..], ...
 *
 * For one pattern such a cut changes no match where nothing that it tries takes `b` after `a`, and no
 * `(?!\S)` follows `a`: what begins before the cut never sees what follows it, and what begins after it sees
 * nothing in front, since these patterns do not look back. One of the two always being in a match then makes
 * the cut a border between words. Of several patterns, each of which cuts the words of the one before, those
 * in front of one with a border need to have no match across it.
 */
export class PatternBorders {
  readonly #isBorder: Uint8Array;

  /** @param patterns those that cut words, in their order, as `splitAt` uses them */
  constructor(patterns: readonly RegExp[]) {
    this.#isBorder = new Uint8Array(CHARACTERS * CHARACTERS);
    let open = new Uint8Array(CHARACTERS * CHARACTERS).fill(1);
    const classes = new Classes();
    for (const pattern of patterns) {
      const read =
        pattern.flags === 'gu' && !pattern.source.includes('(?i') ? readPattern(pattern.source) : null;
      // Empty matches would be cuts of their own.
      if (read === null || read.some(({ pieces }) => pieces.every(({ least }) => least === 0))) return;
      open = withoutPairs(open, read, classes);
      const isAlone = charactersAlone(read, classes);
      for (let pair = 0; pair < open.length; pair++) {
        const isTaken = isAlone[Math.floor(pair / CHARACTERS)] || isAlone[pair % CHARACTERS];
        if (open[pair] && isTaken) this.#isBorder[pair] = 1;
      }
    }
  }

  /** True where there are such places at all. */
  get exist(): boolean {
    return this.#isBorder.includes(1);
  }

  /** True for a border between two UTF-16 units. */
  isBetween(before: number, behind: number): boolean {
    return (before | behind) < CHARACTERS && this.#isBorder[before * CHARACTERS + behind] === 1;
  }
}

/**
 * The pairs without those that an attempt of the pattern may take one after the other, or look ahead between.
 */
function withoutPairs(
  pairs: Uint8Array,
  branches: readonly Branch[],
  classes: Classes,
): Uint8Array<ArrayBuffer> {
  const left = Uint8Array.from(pairs);
  for (const { pieces, beforeSpace } of branches) {
    const taken = pieces.map(({ text }) => classes.of(text));
    for (let before = 0; before < CHARACTERS; before++) {
      const first = taken.findIndex((characters) => characters[before] === 1);
      if (first < 0) continue;
      const { most, text } = pieces[first]!;
      const behind = taken.slice(most > 1 || isGroup(text) ? first : first + 1);
      const row = left.subarray(before * CHARACTERS, (before + 1) * CHARACTERS);
      if (beforeSpace) row.fill(0);
      for (const characters of behind) for (let i = 0; i < CHARACTERS; i++) row[i]! &= 1 - characters[i]!;
    }
  }
  return left;
}

/** The characters that are in a match wherever they stand: a branch takes each of them alone, if nothing else does. */
function charactersAlone(branches: readonly Branch[], classes: Classes): Uint8Array {
  const alone = new Uint8Array(CHARACTERS);
  for (const { pieces, beforeSpace } of branches) {
    const needed = pieces.filter(({ least }) => least > 0);
    const [only] = needed;
    if (beforeSpace || needed.length !== 1 || only!.least !== 1 || isGroup(only!.text)) continue;
    const characters = classes.of(only!.text);
    for (let i = 0; i < CHARACTERS; i++) if (characters[i]) alone[i] = 1;
  }
  return alone;
}

const isGroup = (text: string) => text.startsWith('(');

/** The characters that pieces may take, each looked up once: compiling a pattern of Unicode's letters takes a millisecond. */
class Classes {
  readonly #known = new Map<string, Uint8Array>();

  /** Characters of a piece; of a group, those of all that is in it. */
  of(piece: string): Uint8Array {
    const all = new Uint8Array(CHARACTERS);
    for (const atom of atomsOf(piece)) {
      const characters = this.#known.get(atom) ?? charactersOf(atom);
      this.#known.set(atom, characters);
      for (let i = 0; i < CHARACTERS; i++) all[i]! |= characters[i]!;
    }
    return all;
  }
}

const ASCII = Array.from({ length: CHARACTERS }, (_, unit) => String.fromCharCode(unit));

function charactersOf(atom: string): Uint8Array {
  if (atom.length === 1 && atom !== '.') return Uint8Array.from(ASCII, (one) => (one === atom ? 1 : 0));
  const pattern = new RegExp(`^(?:${atom})$`, 'u');
  return Uint8Array.from(ASCII, (one) => (pattern.test(one) ? 1 : 0));
}
