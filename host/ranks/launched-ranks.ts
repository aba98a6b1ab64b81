import { rmSync } from 'node:fs';
import type { FollowerData, SeatData } from '../../callbacks/ranks-options.js';
import type { GroupHandle } from '../../engine/sharding/group.js';
import { rankWorkerScript } from '../../engine/worker/worker-script.js';
import { ProcessLink } from '../links/process-link.js';
import type { BeatReader, LinkEvents, WorkerLink } from '../links/worker-link.js';
import { makeGroupMemory } from './group-memory.js';

/** Opens the worker of rank 0. */
export type OpenLeader<Message, Command> = (
  seat: SeatData | null,
  events: LinkEvents<Message>,
) => WorkerLink<Command>;

export interface LaunchOptions {
  enginePath: string;
  tensorParallelSize: number;
  pipelineParallelSize: number;
  /** Most milliseconds of one wait for another rank. */
  limitMs: number;
}

type RankMessage = { type: string };

/**
 * The worker of rank 0, and each other rank in a process of its own, as one worker of which the supervisor knows no more: if one of
 * them ends, all end, and another LaunchedRanks follows as a whole.
 *
 *   GptManager -- supervisor -- LaunchedRanks -+-- link -------- worker of rank 0: the loop
 *                                              +-- ProcessLink - rank 1: follows
 *                                              +-- ProcessLink - rank 2: follows       all of them: one memory
 */
export class LaunchedRanks<Message extends { type: string }, Command> implements WorkerLink<Command> {
  readonly #events: LinkEvents<Message>;
  readonly #memory: { path: string; group: GroupHandle };
  readonly #leader: WorkerLink<Command>;
  readonly #followers: WorkerLink<never>[] = [];
  /** Ranks that still run. */
  readonly #running = new Set<number>();
  #error: Error | null = null;

  /** @throws what the system says where there is no room for the memory or a process */
  constructor(
    { enginePath, limitMs, ...shape }: LaunchOptions,
    events: LinkEvents<Message>,
    openLeader: OpenLeader<Message, Command>,
  ) {
    this.#events = events;
    const size = shape.tensorParallelSize * shape.pipelineParallelSize;
    this.#memory = makeGroupMemory(size);
    const { path } = this.#memory;
    const seatOf = (rank: number): SeatData => ({ ...shape, rank, path, limitMs, ranksHere: size });
    try {
      for (let rank = 1; rank < size; rank++) {
        this.#followers.push(this.#start(rank, { enginePath, seat: seatOf(rank) }));
        this.#running.add(rank);
      }
      this.#leader = openLeader(seatOf(0), {
        onMessage: (message) => this.#handle(message),
        onExit: (error) => this.#noteExit(0, error),
      });
      this.#running.add(0);
    } catch (error) {
      this.#end('The group of ranks could not be started.');
      throw error;
    }
  }

  get subject(): string {
    return this.#leader.subject;
  }

  get pid(): number | null {
    return this.#leader.pid;
  }

  get heartbeat(): BeatReader {
    return this.#leader.heartbeat;
  }

  get whyStuck(): string {
    return this.#leader.whyStuck;
  }

  post(message: Command | { type: 'shutdown' }, transfer?: readonly ArrayBuffer[]): void {
    if (this.#running.has(0)) this.#leader.post(message, transfer);
  }

  desert(): void {
    this.#leader.desert();
  }

  terminate(): void {
    this.#end('The engine was ended.');
  }

  unref(): void {
    this.#leader.unref();
    for (const follower of this.#followers) follower.unref();
  }

  #start(rank: number, data: FollowerData): WorkerLink<never> {
    return new ProcessLink<never, RankMessage, never>(
      rankWorkerScript(),
      data,
      { onMessage: () => {}, onExit: (error) => this.#noteExit(rank, error) },
      { owner: `Rank ${rank}`, beatMs: 0 },
    );
  }

  #handle(message: Message): void {
    // All ranks have the memory: its name is needed no more.
    if (message.type === 'ready') rmSync(this.#memory.path, { force: true });
    this.#events.onMessage(message);
  }

  #noteExit(rank: number, error: Error | null): void {
    this.#running.delete(rank);
    // A rank that ends because another one did says so too: the first reason counts.
    if (this.#error === null && error !== null) {
      this.#error = error;
      this.#end(error.message);
    }
    if (this.#running.size > 0) return;
    this.#memory.group.close();
    this.#events.onExit(this.#error);
  }

  /** Ends every rank at once: first their waits for one another, which are in native code. */
  #end(reason: string): void {
    rmSync(this.#memory.path, { force: true });
    this.#memory.group.abort(reason);
    for (const follower of this.#followers) follower.terminate();
    if (this.#running.has(0)) this.#leader.terminate();
  }
}
