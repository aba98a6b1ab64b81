import { childrenOf, type ForNode, type IfNode, type Node, type Statement } from './nodes.js';

/** How a variable of a frame gets its first value: as a parameter, out of the context, from an outer frame, or none. */
export type Load =
  | { from: 'parameter' }
  | { from: 'context'; name: string }
  | { from: 'outer'; reference: string }
  | { from: 'nowhere' };

/**
 * Variables of a frame, found before it runs as Jinja2 does (its module idtracking). A reference is a name with the depth
 * of its frame: "1 x".
 */
export class Symbols {
  readonly depth: number;
  readonly parent: Symbols | null;
  references = new Map<string, string>();
  loads = new Map<string, Load>();
  stores = new Set<string>();

  constructor(parent: Symbols | null = null, depth = parent === null ? 0 : parent.depth + 1) {
    this.parent = parent;
    this.depth = depth;
  }

  /** The reference of a name; undefined: no frame has it. */
  find(name: string): string | undefined {
    return this.references.get(name) ?? this.parent?.find(name);
  }

  copy(): Symbols {
    const copy = new Symbols(this.parent, this.depth);
    copy.references = new Map(this.references);
    copy.loads = new Map(this.loads);
    copy.stores = new Set(this.stores);
    return copy;
  }

  load(name: string): void {
    if (this.find(name) === undefined) this.#define(name, { from: 'context', name });
  }

  store(name: string): void {
    this.stores.add(name);
    if (this.references.has(name)) return;
    const outer = this.parent?.find(name);
    this.#define(name, outer === undefined ? { from: 'nowhere' } : { from: 'outer', reference: outer });
  }

  parameter(name: string): string {
    this.stores.add(name);
    return this.#define(name, { from: 'parameter' });
  }

  #define(name: string, load: Load): string {
    const reference = `${this.depth} ${name}`;
    this.references.set(name, reference);
    this.loads.set(reference, load);
    return reference;
  }

  /** Takes over what the branches of a condition found: what only some of them set has its value from before. */
  join(branches: readonly Symbols[]): void {
    const stores = new Set(branches.flatMap((branch) => [...branch.stores]));
    for (const name of this.stores) stores.delete(name);
    for (const branch of branches) {
      for (const [name, reference] of branch.references) this.references.set(name, reference);
      for (const [reference, load] of branch.loads) this.loads.set(reference, load);
      for (const name of branch.stores) this.stores.add(name);
    }
    for (const name of stores) {
      const outer = this.parent?.find(name);
      const load: Load =
        outer === undefined ? { from: 'context', name } : { from: 'outer', reference: outer };
      this.loads.set(this.find(name)!, load);
    }
  }
}

/** Finds the variables of a frame whose content these nodes are. */
export function findSymbols(symbols: Symbols, nodes: readonly (Node | null)[]): void {
  const finder = new SymbolFinder(symbols);
  for (const node of nodes) if (node !== null) finder.visit(node);
}

/** Finds the variables of a loop's target, which the loop sets. */
export function findTargets(symbols: Symbols, target: ForNode['target']): void {
  if (target.type === 'Name') symbols.parameter(target.name);
  else for (const child of childrenOf(target)) findTargets(symbols, child as ForNode['target']);
}

class SymbolFinder {
  #symbols: Symbols;

  constructor(symbols: Symbols) {
    this.#symbols = symbols;
  }

  visit(node: Node): void {
    switch (node.type) {
      case 'Name':
        if (node.use === 'param') this.#symbols.parameter(node.name);
        else this.#symbols[node.use](node.name);
        break;
      case 'NamespaceTarget':
        this.#symbols.load(node.name);
        break;
      case 'If':
        this.#visitIf(node);
        break;
      case 'Set':
        this.visit(node.value);
        this.visit(node.target);
        break;
      case 'Macro':
        this.#symbols.store(node.name);
        break;
      case 'Load':
        this.visit(node.template);
        for (const name of node.names) this.#symbols.store(name);
        break;
      default:
        for (const child of outerPartsOf(node)) this.visit(child);
    }
  }

  #visitIf(node: IfNode): void {
    this.visit(node.test);
    const symbols = this.#symbols;
    const branch = (nodes: readonly Statement[]) => {
      this.#symbols = symbols.copy();
      for (const one of nodes) this.visit(one);
      return this.#symbols;
    };
    const branches = [node.body, node.others, node.otherwise].map(branch);
    this.#symbols = symbols;
    symbols.join(branches);
  }
}

/** Parts of a node that belong to the frame around it; others are within a frame of their own. */
function outerPartsOf(node: Node): Node[] {
  switch (node.type) {
    case 'For':
      return [node.iterable];
    case 'CallBlock':
      return node.call === null ? [] : [node.call];
    case 'FilterBlock':
      return [node.filter];
    case 'With':
      return node.values;
    case 'SetBlock':
      return [node.target];
    case 'Scope':
    case 'Block':
      return [];
    default:
      return childrenOf(node);
  }
}

/** Names of these that are read within nodes before they are set there. */
export function findUndeclared(nodes: readonly Node[], names: readonly string[]): Set<string> {
  const open = new Set(names);
  const found = new Set<string>();
  const visit = (node: Node): void => {
    if (node.type === 'Block') return;
    if (node.type === 'Name') {
      if (node.use === 'load' && open.has(node.name)) found.add(node.name);
      else open.delete(node.name);
      return;
    }
    for (const child of childrenOf(node)) visit(child);
  };
  for (const node of nodes) visit(node);
  return found;
}
