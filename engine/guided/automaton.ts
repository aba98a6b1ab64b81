import { checkSize } from './automaton-size.js';
import type { Expr, Grammar } from './grammar.js';
import { specialBytes } from './special-bytes.js';
import { characterBytes, OUTSIDE } from './utf8-ranges.js';

/** Edges out of the states: those of state s have the indices start[s] to start[s + 1]. */
interface Ways {
  readonly start: Int32Array;
  readonly target: Int32Array;
}

/**
 * A grammar as states over the bytes of UTF-8, in flat tables, which can be passed from thread to thread. Rules call each
 * other, so a place in the grammar is a state and a stack of states to return to. Repetitions are written out.
 *
 *   bytes   a byte from `low` to `high` leads to the state `target`
 *   empty   the state `target` is reached without a byte
 *   calls   the rule that begins in the state `target` comes next, and when it has ended the state `back`
 *
 * A state without any edge is the end of its rule.
 */
export interface Automaton {
  readonly start: number;
  readonly numStates: number;
  readonly bytes: Ways & { readonly low: Uint8Array; readonly high: Uint8Array };
  readonly empty: Ways;
  readonly calls: Ways & { readonly back: Int32Array };
}

/** True if nothing follows the state: its rule has ended. */
export function isEnd({ bytes, empty, calls }: Automaton, state: number): boolean {
  const hasNone = ({ start }: Ways) => start[state] === start[state + 1];
  return hasNone(bytes) && hasNone(empty) && hasNone(calls);
}

/** Number of bytes in its tables. */
export function bytesOfAutomaton({ bytes, empty, calls }: Automaton): number {
  const tables = [bytes.start, bytes.target, bytes.low, bytes.high, empty.start, empty.target];
  return [...tables, calls.start, calls.target, calls.back].reduce(
    (sum, { byteLength }) => sum + byteLength,
    0,
  );
}

/** @param grammar as returned by `checkedGrammar`. @throws GuideError if it is larger than an automaton may be */
export function newAutomaton(grammar: Grammar): Automaton {
  checkSize(grammar);
  return new AutomatonBuilder(grammar).build();
}

class AutomatonBuilder {
  readonly #grammar: Grammar;
  readonly #ruleStarts = new Map<string, number>();
  #numStates = 0;
  /** Edges in the order in which they were made: (from, low, high, to), (from, to), (from, rule, back). */
  readonly #bytes: number[] = [];
  readonly #empty: number[] = [];
  readonly #calls: number[] = [];

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
  }

  build(): Automaton {
    const { rules, root } = this.#grammar;
    for (const name of rules.keys()) {
      this.#ruleStarts.set(name, this.#numStates);
      this.#numStates += 2;
    }
    for (const [name, expr] of rules) {
      const start = this.#ruleStarts.get(name)!;
      this.#add(expr, start, start + 1);
    }
    const bytes = table(this.#bytes, 4, this.#numStates);
    const empty = table(this.#empty, 2, this.#numStates);
    const calls = table(this.#calls, 3, this.#numStates);
    return {
      start: this.#ruleStarts.get(root)!,
      numStates: this.#numStates,
      bytes: { start: bytes.start, low: bytes.byte(1), high: bytes.byte(2), target: bytes.number(3) },
      empty: { start: empty.start, target: empty.number(1) },
      calls: { start: calls.start, target: calls.number(1), back: calls.number(2) },
    };
  }

  #newState(): number {
    return this.#numStates++;
  }

  /** Adds edges by which the expression leads from one state to another. */
  #add(expr: Expr, from: number, to: number): void {
    switch (expr.kind) {
      case 'text':
        this.#addBytes(Buffer.from(expr.text), from, to);
        break;
      case 'special':
        this.#addBytes(specialBytes(expr.text), from, to);
        break;
      case 'chars':
        this.#addCharacter(expr.ranges, from, to);
        break;
      case 'rule':
        this.#calls.push(from, this.#ruleStarts.get(expr.name)!, to);
        break;
      case 'alt':
        for (const item of expr.items) this.#add(item, from, to);
        break;
      case 'seq':
        this.#addSequence(expr.items, from, to);
        break;
      case 'repeat':
        this.#addRepeat(expr, from, to);
        break;
      case 'graph':
        this.#addGraph(expr, from, to);
    }
  }

  #addBytes(bytes: Uint8Array, from: number, to: number): void {
    if (bytes.length === 0) this.#empty.push(from, to);
    let state = from;
    for (const [i, byte] of bytes.entries()) {
      const next = i === bytes.length - 1 ? to : this.#newState();
      this.#bytes.push(state, byte, byte, next);
      state = next;
    }
  }

  #addCharacter(ranges: readonly (readonly [number, number])[], from: number, to: number): void {
    const { states, ways } = characterBytes(ranges);
    const first = this.#numStates;
    this.#numStates += states;
    for (let i = 0; i < ways.length; i += 4) {
      const [begin, low, high, end] = [ways[i]!, ways[i + 1]!, ways[i + 2]!, ways[i + 3]!];
      this.#bytes.push(
        begin === OUTSIDE ? from : first + begin,
        low,
        high,
        end === OUTSIDE ? to : first + end,
      );
    }
  }

  #addSequence(items: readonly Expr[], from: number, to: number): void {
    if (items.length === 0) this.#empty.push(from, to);
    let state = from;
    for (const [i, item] of items.entries()) {
      const next = i === items.length - 1 ? to : this.#newState();
      this.#add(item, state, next);
      state = next;
    }
  }

  /** Its states are new ones, since edges may lead back to the first. */
  #addGraph({ edges, ends }: Extract<Expr, { kind: 'graph' }>, from: number, to: number): void {
    const states = new Map<number, number>();
    const stateOf = (state: number): number => {
      const known = states.get(state) ?? this.#newState();
      states.set(state, known);
      return known;
    };
    this.#empty.push(from, stateOf(0));
    for (const edge of edges) this.#add(edge.expr, stateOf(edge.from), stateOf(edge.to));
    for (const end of ends) if (states.has(end)) this.#empty.push(states.get(end)!, to);
  }

  /**
   *   {2,4}   from -item-> . -item-> . -item-> . -item-> to
   *                                  '----------'------> to
   *   {1,}    from -item-> loop -item-> loop, loop -> to
   */
  #addRepeat({ item, min, max }: Extract<Expr, { kind: 'repeat' }>, from: number, to: number): void {
    let state = from;
    // Begin in a separate state: edges that lead back into a loop must not lead back into the expression around it.
    const step = (): void => {
      const next = this.#newState();
      this.#add(item, state, next);
      state = next;
    };
    for (let i = 0; i < min; i++) step();
    if (max === null) {
      const loop = this.#newState();
      this.#empty.push(state, loop);
      const back = this.#newState();
      this.#add(item, loop, back);
      this.#empty.push(back, loop);
      state = loop;
    } else {
      for (let i = min; i < max; i++) {
        this.#empty.push(state, to);
        step();
      }
    }
    this.#empty.push(state, to);
  }
}

/**
 * Sorts edges (from, ...), `width` numbers each, by the state that they lead out of; those of a state keep their order.
 */
function table(ways: readonly number[], width: number, numStates: number) {
  const count = ways.length / width;
  const start = new Int32Array(numStates + 1);
  for (let i = 0; i < ways.length; i += width) start[ways[i]! + 1]!++;
  for (let state = 0; state < numStates; state++) start[state + 1]! += start[state]!;
  const next = start.slice();
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) order[next[ways[i * width]!]!++] = i;
  const column = <T extends Int32Array | Uint8Array>(into: T, field: number): T => {
    for (let i = 0; i < count; i++) into[i] = ways[order[i]! * width + field]!;
    return into;
  };
  return {
    start,
    byte: (field: number) => column(new Uint8Array(count), field),
    number: (field: number) => column(new Int32Array(count), field),
  };
}
