import type { RosterPool } from '../nats/roster-pool.js';
import type { WorkerRoster } from '../nats/worker-roster.js';

/**
 * Pools of prefill workers whose blocks no answering worker can use, though some worker could take blocks.
 */
export function unusedPrefillPools(roster: WorkerRoster, model: string): RosterPool[] {
  const answering = roster.poolsOf(model).filter(({ takers }) => takers.size > 0);
  const taken = new Set(answering.flatMap(({ layouts }) => [...layouts]));
  if (answering.length === 0) return [];
  return roster
    .prefillersOf(model)
    .filter(({ takers, layouts }) => takers.size > 0 && ![...layouts].some((layout) => taken.has(layout)));
}

/**
 * Warns once about each pool of prefill workers that is of no use: requests are answered all the same, so the
 * only other sign would be the time that they take.
 */
export class UnusedPrefill {
  readonly #onWarning: (message: string) => void;
  /** Fingerprints of pools that were reported. */
  readonly #told = new Set<string>();

  constructor(onWarning: (message: string) => void) {
    this.#onWarning = onWarning;
  }

  /** A worker of the model has come, or become another one. */
  look(roster: WorkerRoster, model: string): void {
    if (roster.prefillersOf(model).length === 0) return;
    for (const pool of unusedPrefillPools(roster, model)) {
      const { name, model: card } = pool;
      if (this.#told.has(name.fingerprint)) continue;
      // An operator who keeps starting different pools gets as many warnings as a fleet may have pools.
      if (this.#told.size >= MAX_TOLD) this.#told.clear();
      this.#told.add(name.fingerprint);
      const others = roster.poolsOf(model).filter(({ takers }) => takers.size > 0);
      this.#onWarning(
        `The prefill workers of ${card.name} in the pool ${name.fingerprint} are of no use: no worker that answers can take their blocks, ${whyNot(pool, others)}. The workers that answer compute all prompts.`,
      );
    }
  }
}

const MAX_TOLD = 1024;

/** What keeps blocks from being taken, as a clause. */
function whyNot({ model: { engine, info }, layouts }: RosterPool, others: readonly RosterPool[]): string {
  if ([...layouts].length === 0) return 'since they can hand over none';
  if (others.every((other) => [...other.layouts].length === 0)) return 'since none of them takes any';
  const differs = (of: (pool: RosterPool['model']) => unknown, own: unknown) =>
    others.every(({ model }) => of(model) !== own);
  if (differs((model) => model.engine.tokensPerBlock, engine.tokensPerBlock)) {
    const sizes = [...new Set(others.map(({ model }) => model.engine.tokensPerBlock))].join(' or ');
    return `which have ${engine.tokensPerBlock} tokens where theirs have ${sizes} (--tokens-per-block)`;
  }
  const causes = (['executor', 'instructionSet', 'kvDtype'] as const).filter((name) =>
    differs((model) => model.info[name], info[name]),
  );
  const words = { executor: 'executor', instructionSet: 'instruction set', kvDtype: 'type of the KV cache' };
  return causes.length > 0
    ? `since they differ in the ${causes.map((cause) => words[cause]).join(' and the ')}`
    : 'since they differ in files, precision, version or attention window';
}
