import type { Rendering } from '../rendering.js';
import type { Node } from '../syntax/nodes.js';
import { findSymbols, Symbols } from '../syntax/symbols.js';
import type { Value } from '../values/value.js';

/** Variables of a function as it runs: the template itself, a block, a macro, or a loop that calls itself. */
export interface Frame {
  readonly run: Rendering;
  /** Values by slot; undefined: not set. */
  readonly slots: (Value | undefined)[];
  /** The frame in which the function was defined. */
  readonly outer: Frame | null;
}

export type Evaluate = (frame: Frame) => Value;
export type Assign = (frame: Frame, value: Value) => void;
/** What follows a statement: the next one, or the end of a round of the loop. */
export type Flow = typeof NEXT | typeof BREAK | typeof CONTINUE;
export type Execute = (frame: Frame) => Flow;

export const NEXT = 0;
export const BREAK = 1;
export const CONTINUE = 2;

/** Slots of a function's variables. */
export class FunctionSlots {
  readonly outer: FunctionSlots | null;
  readonly #slots = new Map<string, number>();

  constructor(outer: FunctionSlots | null) {
    this.outer = outer;
  }

  /** The slot of a reference of this function, which is new here or known. */
  declare(reference: string): number {
    let slot = this.#slots.get(reference);
    if (slot === undefined) {
      slot = this.#slots.size;
      this.#slots.set(reference, slot);
    }
    return slot;
  }

  /** A frame for a call. */
  open(run: Rendering, outer: Frame | null): Frame {
    return { run, outer, slots: new Array<Value | undefined>(this.#slots.size).fill(undefined) };
  }

  /** Where a reference is: how many functions outwards, and its slot. */
  locate(reference: string): { hops: number; slot: number } {
    let hops = 0;
    let slots: FunctionSlots = this;
    while (slots.outer !== null && !slots.#slots.has(reference)) {
      slots = slots.outer;
      hops++;
    }
    return { hops, slot: slots.declare(reference) };
  }
}

/** What the compiler knows at a place of the template. */
export interface ScopeOptions {
  /** Assignments are seen in blocks of the template too. */
  isTopLevel: boolean;
  /** Within a condition: filters that do not exist fail only when they are used. */
  isConditional: boolean;
  /** Within a loop of the same function. */
  isInLoop: boolean;
}

export class Scope implements ScopeOptions {
  readonly symbols: Symbols;
  readonly slots: FunctionSlots;
  readonly isTopLevel: boolean;
  readonly isConditional: boolean;
  readonly isInLoop: boolean;
  readonly program: Program;

  constructor(program: Program, symbols: Symbols, slots: FunctionSlots, options: Partial<ScopeOptions> = {}) {
    this.program = program;
    this.symbols = symbols;
    this.slots = slots;
    const { isTopLevel = false, isConditional = false, isInLoop = false } = options;
    this.isTopLevel = isTopLevel;
    this.isConditional = isConditional;
    this.isInLoop = isInLoop;
  }

  /** A frame within this one, of the same function. @param nodes its content, where that is known already */
  inner(nodes: readonly (Node | null)[] = [], options: Partial<ScopeOptions> = {}): Scope {
    const symbols = new Symbols(this.symbols);
    findSymbols(symbols, nodes);
    return new Scope(this.program, symbols, this.slots, { isInLoop: this.isInLoop, ...options });
  }

  /** A frame within this one, of a function of its own. */
  innerFunction(): Scope {
    return new Scope(this.program, new Symbols(this.symbols), new FunctionSlots(this.slots));
  }

  /** A branch of a condition, which has the frame's variables. */
  conditional(): Scope {
    return new Scope(this.program, this.symbols, this.slots, { ...this.#options, isConditional: true });
  }

  get #options(): ScopeOptions {
    const { isTopLevel, isConditional, isInLoop } = this;
    return { isTopLevel, isConditional, isInLoop };
  }

  /** Reads a variable; the result is undefined where it is not set. */
  reader(name: string): (frame: Frame) => Value | undefined {
    return this.referenceReader(this.symbols.find(name)!);
  }

  referenceReader(reference: string): (frame: Frame) => Value | undefined {
    const { hops, slot } = this.slots.locate(reference);
    if (hops === 0) return (frame) => frame.slots[slot];
    if (hops === 1) return (frame) => frame.outer!.slots[slot];
    return (frame) => outwards(frame, hops).slots[slot];
  }

  /** Sets a variable of this function. */
  writer(name: string): Assign {
    const { hops, slot } = this.slots.locate(this.symbols.find(name)!);
    if (hops > 0) throw new Error(`${name} is a variable of another function`);
    return (frame, value) => {
      frame.slots[slot] = value;
    };
  }

  /** Gives the frame's variables their first values. */
  enter(): (frame: Frame) => void {
    const steps: ((frame: Frame) => void)[] = [];
    for (const [reference, load] of this.symbols.loads) {
      const slot = this.slots.declare(reference);
      if (load.from === 'context') {
        const { name } = load;
        steps.push(({ slots, run }) => {
          slots[slot] = run.resolve(name);
        });
      } else if (load.from === 'outer') {
        const read = this.referenceReader(load.reference);
        steps.push((frame) => {
          frame.slots[slot] = read(frame);
        });
      } else if (load.from === 'nowhere') {
        steps.push(({ slots }) => {
          slots[slot] = undefined;
        });
      }
    }
    return inOrder(steps);
  }

  /** Forgets the frame's variables. */
  leave(): (frame: Frame) => void {
    const slots = Array.from(this.symbols.loads.keys(), (reference) => this.slots.declare(reference));
    return (frame) => {
      for (const slot of slots) frame.slots[slot] = undefined;
    };
  }
}

/** Facts of the whole template while it is compiled. */
export interface Program {
  /** Steps of what is being compiled. */
  cost: number;
  /** Blocks by name. */
  readonly blocks: Map<string, (run: Rendering) => void>;
}

/** Compiles a part, and returns the steps that each run of it takes. */
export function measured<T>(program: Program, compile: () => T): { made: T; cost: number } {
  const before = program.cost;
  program.cost = 0;
  const made = compile();
  const { cost } = program;
  program.cost = before;
  return { made, cost };
}

function outwards(frame: Frame, hops: number): Frame {
  let found = frame;
  for (let i = 0; i < hops; i++) found = found.outer!;
  return found;
}

function inOrder(steps: readonly ((frame: Frame) => void)[]): (frame: Frame) => void {
  if (steps.length === 0) return () => {};
  if (steps.length === 1) return steps[0]!;
  return (frame) => {
    for (const step of steps) step(frame);
  };
}
