import { rmSync } from 'node:fs';
import { SHARE_ENV, Worker } from 'node:worker_threads';
import { addressText, isShared } from '../../callbacks/group-address.js';
import type { MissingRanks, SeatData } from '../../callbacks/ranks-options.js';
import { sizeOf } from '../../engine/sharding/rank-shape.js';
import { asSkeinError, EngineFailure } from '../engine-failure.js';
import type { BeatReader, LinkEvents, WorkerLink } from '../links/worker-link.js';
import type { FromGroupThread, GroupThreadData, ToGroupThread } from './group-messages.js';

/** Events of a group besides those of its worker. */
export interface GroupEvents<Message> extends LinkEvents<Message> {
  /** A message of another rank's host. */
  onGroupMessage: (rank: number, message: unknown) => void;
  /** Rank 0 waits for these ranks, or for none any more. Must not throw. */
  onMissing: (missing: MissingRanks) => void;
}

/**
 * The worker of one rank of a group whose other ranks are elsewhere, as one worker of which the supervisor knows no more. It begins when
 * all have met, and ends when one of them does; then every supervisor starts another, and they meet again.
 *
 *   GptManager -- supervisor -- JoinedRanks -+-- link ---------- worker: the loop, or a follower
 *                                            +-- group thread -- connections to the other ranks
 */
export class JoinedRanks<Message extends { type: string }, Command> implements WorkerLink<Command> {
  readonly #options: GroupThreadData;
  readonly #events: GroupEvents<Message>;
  readonly #open: (seat: SeatData, events: LinkEvents<Message>) => WorkerLink<Command>;
  readonly #thread: Worker;
  readonly #subject: string;
  #own: WorkerLink<Command> | null = null;
  #ownHasEnded = false;
  #threadHasEnded = false;
  #isEnding = false;
  #error: Error | null = null;

  constructor(
    data: GroupThreadData,
    events: GroupEvents<Message>,
    open: (seat: SeatData, events: LinkEvents<Message>) => WorkerLink<Command>,
  ) {
    this.#options = data;
    this.#events = events;
    this.#open = open;
    this.#subject = `Rank ${data.rank} of ${sizeOf(data.shape)}`;
    this.#thread = new Worker(groupThreadScript(), { workerData: data, name: 'skein-ranks', env: SHARE_ENV });
    this.#thread.on('message', (message: FromGroupThread) => this.#handle(message));
    this.#thread.on('error', (error) => {
      this.#error ??= asSkeinError(error as Error);
    });
    this.#thread.on('exit', () => {
      this.#threadHasEnded = true;
      if (!this.#isEnding)
        this.#lose(this.#error ?? new EngineFailure(`${this.#subject} lost its connections.`));
      this.#settle();
    });
  }

  get subject(): string {
    return this.#own?.subject ?? this.#subject;
  }

  get pid(): number | null {
    return this.#own?.pid ?? null;
  }

  get heartbeat(): BeatReader {
    return this.#own?.heartbeat ?? { beats: 0, isAsleep: true };
  }

  get whyStuck(): string {
    return this.#own?.whyStuck ?? 'waits for other ranks';
  }

  post(message: Command | { type: 'shutdown' }, transfer?: readonly ArrayBuffer[]): void {
    if (this.#own !== null && !this.#ownHasEnded) this.#own.post(message, transfer);
    // It is asked to end before all have met: no rank has anything yet.
    else if ((message as { type?: unknown }).type === 'shutdown') this.#end(null);
  }

  /** Sends a message to the host of a rank, or of all others. */
  tell(rank: number | 'all', message: unknown): void {
    this.#postToThread({ type: 'message', rank, message });
  }

  desert(): void {
    this.#own?.desert();
  }

  terminate(): void {
    this.#lose(new EngineFailure('The engine was ended.'));
  }

  /** Ends the group because of an error that this rank's host has found. */
  lose(reason: string): void {
    this.#lose(new EngineFailure(reason));
  }

  unref(): void {
    this.#thread.unref();
    this.#own?.unref();
  }

  #handle(message: FromGroupThread): void {
    if (message.type === 'lost') this.#lose(new EngineFailure(message.reason));
    else if (message.type === 'missing') {
      const { ranks, refused } = message;
      if (!this.#isEnding)
        this.#events.onMissing({ ranks, refused, address: addressText(this.#options.address) });
    } else if (message.type === 'message') this.#events.onGroupMessage(message.rank, message.message);
    else if (!this.#isEnding) this.#begin(message.path);
  }

  #begin(path: string): void {
    const { shape, rank, limitMs, address } = this.#options;
    const ranksHere = isShared(address) ? sizeOf(shape) : 1;
    const seat: SeatData = { ...shape, rank, path, limitMs, ranksHere };
    try {
      this.#own = this.#open(seat, {
        onMessage: (message) => {
          // All ranks that use this memory have opened it: its name is needed no more.
          if (message.type === 'ready' && (rank === 0 || !isShared(address))) rmSync(path, { force: true });
          this.#events.onMessage(message);
        },
        onExit: (error) => {
          this.#ownHasEnded = true;
          if (error !== null) this.#error ??= error;
          this.#end(this.#error?.message ?? null);
          this.#settle();
        },
      });
    } catch (error) {
      this.#lose(error as Error);
    }
  }

  #lose(error: Error): void {
    this.#error ??= error;
    // First the waits of native code are ended, then the worker.
    this.#end(this.#error.message);
    if (this.#own !== null && !this.#ownHasEnded) this.#own.terminate();
    this.#settle();
  }

  #end(reason: string | null): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // The others report it as their own end, so it names the rank.
    const named =
      reason === null || reason.startsWith('Rank ') ? reason : `${this.#subject} has ended: ${reason}`;
    this.#postToThread({ type: 'end', reason: named });
  }

  #settle(): void {
    if (!this.#threadHasEnded || (this.#own !== null && !this.#ownHasEnded)) return;
    this.#events.onExit(this.#error);
  }

  #postToThread(message: ToGroupThread): void {
    if (!this.#threadHasEnded) this.#thread.postMessage(message);
  }
}

/**
 * URL of the module that holds a rank's connections: a file next to this one, also where both are bundled.
 */
const groupThreadScript = (): URL => new URL('./group-thread.js', import.meta.url);
