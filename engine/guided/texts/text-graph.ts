import { EMPTY, type Expr, type GraphEdge, NOTHING } from '../grammar.js';
import { spend } from '../reading-work.js';
import { Alphabet } from './alphabet.js';
import { type Term, Terms } from './terms.js';
import { plainExpr, type TextSet } from './text-set.js';

/** Most states of an automaton of intersections and complements. */
export const MAX_TEXT_STATES = 20_000;
/** Most letters looked at over all of its states. */
const MAX_TEXT_STEPS = 600_000;

/**
 * An expression for a set of texts. Where it has an intersection or a complement, that is the graph of a deterministic
 * automaton; null where that would have more than MAX_TEXT_STATES states.
 */
export function exprOfTexts(set: TextSet): Expr | null {
  return plainExpr(set) ?? graphOf(set);
}

function graphOf(set: TextSet): Expr | null {
  const terms = new Terms(new Alphabet([set]));
  const found = automatonOf(terms, terms.of(set));
  if (found === null) return null;
  const alive = statesToEnds(found);
  if (!alive.has(0)) return NOTHING;
  const edges = found.edges.filter(({ from, to }) => alive.has(from) && alive.has(to));
  return edges.length === 0 ? EMPTY : { kind: 'graph', edges, ends: found.ends };
}

interface Graph {
  edges: GraphEdge[];
  ends: number[];
}

/** All terms after the letters of a term, as states with edges between them; the term itself is state 0. */
function automatonOf(terms: Terms, start: Term): Graph | null {
  const { alphabet } = terms;
  const letters = alphabet.letters.flatMap((ranges, letter) => (ranges.length > 0 ? [letter] : []));
  const states = new Map<Term, number>([[start, 0]]);
  const edges: GraphEdge[] = [];
  const ends: number[] = [];
  for (const [term, from] of states) {
    if (term.hasEmpty) ends.push(from);
    if (states.size > MAX_TEXT_STATES || states.size * letters.length > MAX_TEXT_STEPS) return null;
    const targets = new Map<Term, number[]>();
    const behind = terms.behind(term);
    for (const letter of letters) {
      const next = behind[letter]!;
      if (next === terms.nothing) continue;
      const known = targets.get(next);
      if (known === undefined) targets.set(next, [letter]);
      else known.push(letter);
    }
    for (const [next, through] of targets) {
      const to = states.get(next) ?? states.size;
      states.set(next, to);
      edges.push({ from, to, expr: { kind: 'chars', ranges: alphabet.charactersOf(through) } });
    }
  }
  return { edges, ends };
}

function statesToEnds({ edges, ends }: Graph): Set<number> {
  spend(edges.length);
  const into = new Map<number, number[]>();
  for (const { from, to } of edges) {
    const sources = into.get(to);
    if (sources === undefined) into.set(to, [from]);
    else sources.push(from);
  }
  const alive = new Set(ends);
  for (const state of alive) for (const source of into.get(state) ?? []) alive.add(source);
  return alive;
}

/** Says whether texts belong to a set. */
export class TextTest {
  readonly #terms: Terms;
  readonly #start: Term;

  constructor(set: TextSet) {
    this.#terms = new Terms(new Alphabet([set]));
    this.#start = this.#terms.of(set);
  }

  has(text: string): boolean {
    let term = this.#start;
    for (const character of text) {
      term = this.#terms.behind(term)[this.#terms.alphabet.letterOf(character.codePointAt(0)!)]!;
      spend(1);
    }
    return term.hasEmpty;
  }
}
