import {
  DEFAULT_TERMINATE_TIMEOUT_MS,
  DEFAULT_WATCHDOG_TIMEOUT_MS,
} from '../../callbacks/options/optional-params.js';
import { openLink } from '../links/open-link.js';
import type { LinkEvents } from '../links/worker-link.js';
import type { BatchHostOptions, OpenOne } from './batch-host-options.js';
import { BatchInstance, type InstanceEvents, type InstanceState } from './batch-instance.js';
import { InstanceChanges } from './instance-changes.js';

/** @param instance the one whose events these are, once it is made */
export type EventsOf<Batch extends object, Info, Message extends { type: string }, Command> = (
  index: number,
  instance: () => BatchInstance<Batch, Info, Message, Command>,
) => InstanceEvents<Batch, Info, Message>;

/** The instances of a host by their numbers, by which formers and turns know them; some come and go while the others run. */
export class InstancePool<Batch extends object, Info, Message extends { type: string }, Command> {
  readonly #options: BatchHostOptions;
  readonly #eventsOf: EventsOf<Batch, Info, Message, Command>;
  readonly #instances = new Map<number, BatchInstance<Batch, Info, Message, Command>>();
  /** Those that are to go, or have not come yet. */
  readonly #changes = new InstanceChanges();

  constructor(options: BatchHostOptions, eventsOf: EventsOf<Batch, Info, Message, Command>) {
    this.#options = options;
    this.#eventsOf = eventsOf;
  }

  /** Opens the instances of the start. */
  openAll(): void {
    for (let index = 0; index < (this.#options.instances ?? 1); index++) this.#open(index);
  }

  /** @param index of an instance that is not gone */
  at(index: number): BatchInstance<Batch, Info, Message, Command> {
    return this.#instances.get(index)!;
  }

  /** undefined: it is gone. */
  find(index: number): BatchInstance<Batch, Info, Message, Command> | undefined {
    return this.#instances.get(index);
  }

  /** -1: it is gone. */
  indexOf(instance: BatchInstance<Batch, Info, Message, Command>): number {
    for (const [index, one] of this.#instances) if (one === instance) return index;
    return -1;
  }

  get indexes(): readonly number[] {
    return [...this.#instances.keys()];
  }

  [Symbol.iterator](): Iterator<BatchInstance<Batch, Info, Message, Command>> {
    return this.#instances.values();
  }

  get isAllRunning(): boolean {
    return [...this].every(({ isRunning }) => isRunning);
  }

  get isAnyRunning(): boolean {
    return [...this].some(({ isRunning }) => isRunning);
  }

  get haveAllEnded(): boolean {
    return [...this].every(({ hasEnded }) => hasEnded);
  }

  /** Info of the latest worker of each; null: it is not loaded yet. */
  get infos(): readonly (Info | null)[] {
    return this.#staying.map(({ info }) => info);
  }

  get states(): readonly InstanceState[] {
    return this.#staying.map(({ state }) => state);
  }

  get pids(): readonly (number | null)[] {
    return this.#staying.map(({ pid }) => pid);
  }

  /** Workers started after the first one of each instance. */
  get restarts(): number {
    let sum = this.#changes.pastRestarts;
    for (const { restarts } of this) sum += restarts;
    return sum;
  }

  /** Instances that are not to go. */
  get #staying(): BatchInstance<Batch, Info, Message, Command>[] {
    return [...this.#instances].flatMap(([index, one]) => (this.#changes.isLeaving(index) ? [] : [one]));
  }

  /**
   * Those that may have a batch now, the one with the fewest first.
   * @param needs an instance that is to go still has work that belongs to it
   */
  free(needs: (index: number) => boolean): number[] {
    const free: number[] = [];
    for (const [index, { isFree }] of this.#instances) {
      if (isFree && (!this.#changes.isLeaving(index) || needs(index))) free.push(index);
    }
    return free.sort((one, other) => this.at(one).numPosted - this.at(other).numPosted);
  }

  /** @param prepare called with its number before its worker is opened */
  add(prepare: (index: number) => void): { index: number; ready: Promise<void> } {
    let index = 0;
    while (this.#instances.has(index)) index++;
    const ready = this.#changes.noteComing(index);
    prepare(index);
    this.#open(index);
    return { index, ready };
  }

  /** The instance runs. */
  noteReady(index: number): void {
    this.#changes.noteReady(index);
  }

  /** The instance is to go. Resolves when its worker has ended. */
  noteLeaving(index: number): Promise<void> {
    return this.#changes.noteLeaving(index);
  }

  /** Ends workers of instances that are to go and have nothing to do any more. @param needs as of `free` */
  endLeaving(needs: (index: number) => boolean): void {
    for (const index of this.#changes.leaving) {
      const instance = this.at(index);
      if (instance.numPosted > 0 || needs(index)) continue;
      const end = () => instance.terminate(`${this.#options.subject} has an instance less.`);
      if (!this.#changes.beginEnd(index, end)) continue;
      if (instance.isRunning) instance.shutdown();
      else end();
    }
  }

  /** It comes or goes: its end is no failure of the host. */
  isChanging(index: number): boolean {
    return this.#changes.isOf(index);
  }

  /** An instance is gone that was to go, or could not be loaded. */
  remove(index: number, error: Error | null): void {
    const { restarts } = this.at(index);
    this.#instances.delete(index);
    this.#changes.noteEnded(index, restarts, error);
  }

  terminate(reason: string): void {
    for (const instance of this) instance.terminate(reason);
  }

  #open(index: number): void {
    const { script, data, isolate = false, watchdogTimeoutMs = DEFAULT_WATCHDOG_TIMEOUT_MS } = this.#options;
    const { recallAfterMs = null, batchesAhead = 1, openGroup } = this.#options;
    const isProcess = isolate && recallAfterMs !== null;
    const owner = this.#options.ownerName?.(index) ?? 'The engine';
    const instance: BatchInstance<Batch, Info, Message, Command> = new BatchInstance({
      name: owner,
      batchesAhead: isProcess ? 1 : batchesAhead,
      recallAfterMs: isProcess ? null : recallAfterMs,
      timeLimitMs: this.#options.timeLimitMs ?? 0,
      startLimitMs: this.#options.startLimitMs,
      link: (links, claims) => {
        const open: OpenOne = (more, events) =>
          openLink(
            script,
            { ...data(index, claims), ...more },
            // The caller that opens the worker reads its messages.
            events as unknown as LinkEvents<{ type: string }>,
            { isolate, watchdogTimeoutMs, owner },
          );
        return openGroup === undefined ? open({}, links) : openGroup(links, open);
      },
      restart: this.#options.workerRestart ?? {},
      watchdogTimeoutMs,
      terminateTimeoutMs: this.#options.terminateTimeoutMs ?? DEFAULT_TERMINATE_TIMEOUT_MS,
      events: this.#eventsOf(index, () => instance),
    });
    this.#instances.set(index, instance);
  }
}
