import { type CodePoints, complement, normalized } from '../grammar.js';
import { spend } from '../reading-work.js';
import type { TextSet } from './text-set.js';

/** Intervals and classes compared per step of work. */
const COMPARED_PER_STEP = 8;

/**
 * The characters of some sets of texts, in groups (letters) that no class of these sets distinguishes: a
 * letter stands for all characters of its group.
 */
export class Alphabet {
  /** Characters of each letter; none for that of surrogates. */
  readonly letters: readonly CodePoints[];
  /** Number of letters that stand for a character. */
  readonly numCharacterLetters: number;
  /** The letters of each class of the sets, by its ranges. */
  readonly #lettersOf = new Map<CodePoints, number[]>();
  /** Ascending first characters of intervals, and the letter of each interval. */
  readonly #starts: number[] = [];
  readonly #letterAt: number[] = [];
  readonly #joined = new Map<string, CodePoints>();

  constructor(sets: readonly TextSet[]) {
    const classes = [...new Map(classesOf(sets).map((ranges) => [ranges.join(';'), ranges])).values()];
    const starts = new Set<number>([0]);
    for (const ranges of classes)
      for (const [low, high] of ranges) {
        starts.add(low);
        starts.add(high + 1);
      }
    this.#starts = [...starts].sort((a, b) => a - b);
    spend(Math.ceil((this.#starts.length * (classes.length + 1)) / COMPARED_PER_STEP));
    const members = this.#starts.map((): number[] => []);
    for (const [i, ranges] of classes.entries()) {
      let range = 0;
      for (const [k, start] of this.#starts.entries()) {
        while (range < ranges.length && ranges[range]![1] < start) range++;
        if (range < ranges.length && ranges[range]![0] <= start) members[k]!.push(i);
      }
    }
    this.letters = this.#group(members);
    this.numCharacterLetters = this.letters.filter(({ length }) => length > 0).length;
  }

  /** Groups intervals that the same classes contain. */
  #group(members: readonly number[][]): CodePoints[] {
    const letters = new Map<string, { letter: number; ranges: [number, number][] }>();
    const end = 0x110000;
    for (const [k, classes] of members.entries()) {
      const key = classes.join();
      const known = letters.get(key) ?? { letter: letters.size, ranges: [] };
      letters.set(key, known);
      const [low, high] = [this.#starts[k]!, (this.#starts[k + 1] ?? end) - 1];
      if (low < end) known.ranges.push([low, high]);
      this.#letterAt.push(known.letter);
    }
    return [...letters.values()].map(({ ranges }) => normalized(ranges));
  }

  letterOf(codePoint: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= codePoint) low = middle;
      else high = middle - 1;
    }
    return this.#letterAt[low]!;
  }

  /** Letters of a class of the sets. */
  lettersOf(ranges: CodePoints): number[] {
    let found = this.#lettersOf.get(ranges);
    if (found === undefined) {
      const letters = new Set<number>();
      for (const [low, high] of ranges) {
        spend(1);
        for (let k = this.#indexOf(low); k < this.#starts.length && this.#starts[k]! <= high; k++)
          letters.add(this.#letterAt[k]!);
      }
      found = [...letters].sort((a, b) => a - b);
      this.#lettersOf.set(ranges, found);
    }
    return found;
  }

  /** Characters of several letters; the same object for the same letters. */
  charactersOf(letters: readonly number[]): CodePoints {
    const key = letters.join();
    const known = this.#joined.get(key);
    if (known !== undefined) return known;
    const ranges = normalized(letters.flatMap((letter) => [...this.letters[letter]!]));
    this.#joined.set(key, ranges);
    return ranges;
  }

  #indexOf(start: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! < start) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Keeps surrogates, which are no characters, out of every other letter. */
const ALL_CHARACTERS: CodePoints = complement([]);

function classesOf(sets: readonly TextSet[]): CodePoints[] {
  const found = new Set<CodePoints>([ALL_CHARACTERS]);
  const characters = new Set<number>();
  const seen = new Set<TextSet>();
  const visit = (set: TextSet): void => {
    if (seen.has(set)) return;
    seen.add(set);
    spend(1);
    switch (set.kind) {
      case 'chars':
        found.add(set.ranges);
        break;
      case 'text':
        for (const character of set.text) characters.add(character.codePointAt(0)!);
        break;
      case 'repeat':
      case 'not':
        visit(set.item);
        break;
      default:
        for (const item of set.items) visit(item);
    }
  };
  for (const set of sets) visit(set);
  return [...found, ...[...characters].map((codePoint): CodePoints => [[codePoint, codePoint]])];
}
