import { setTimeout as delay } from 'node:timers/promises';
import { StoreError, TakenOverError } from '../../../../base/store-errors.js';
import type { ContentWriter } from '../../files/record-store.js';
import type { EventLog } from './event-log.js';
import type { ActiveResponse } from './response-store.js';
import type { ResponseTask } from './response-task.js';

/** What a task that this server makes needs of where all tasks are. */
export interface TaskPlace {
  /** Continues its events after the first `bytes` bytes. */
  content(bytes: number): Promise<ContentWriter>;
  /** Bytes of its events that are stored. */
  eventBytes(): Promise<number>;
  /** True where this server has the task still. */
  confirm(): Promise<boolean>;
  remove(): Promise<void>;
  /** This server does not make it any more. */
  over(): void;
}

/** Milliseconds in which events are gathered before they are stored together. */
const GATHER_MS = 50;
/** Milliseconds after which a store that could not be reached is tried again. */
const AWAY_MS = 1_000;

/** A task that this server makes. */
export class HeldTask {
  task: ResponseTask;
  revision = 0;
  readonly #place: TaskPlace;
  #making: ActiveResponse | null = null;
  #isLeft = false;
  #writer: ContentWriter | null = null;
  /** Bytes of events that are stored, and their number. */
  #storedBytes: number;
  #storedFrames = 0;
  /** Events whose storing failed: they may be stored nevertheless, so the same are stored again before any others. */
  #unsure: { bytes: Buffer; frames: number } | null = null;
  #storing: Promise<void> | null = null;
  /** The latest of the stores, which come one after the other. */
  #stored: Promise<void> = Promise.resolve();

  /** @param eventBytes bytes of events that were stored before */
  constructor(task: ResponseTask, eventBytes: number, place: TaskPlace) {
    this.task = task;
    this.#storedBytes = eventBytes;
    this.#place = place;
  }

  /** Follows the response as it is made. */
  attach(making: ActiveResponse): void {
    this.#making = making;
    const { events } = making;
    if (events !== null) {
      this.#storedFrames = events.frames.length;
      events.follow(() => this.#storeSoon(events));
      this.#storeSoon(events);
    }
    this.#apply();
  }

  /** Takes over what another server has changed of it. */
  meet({ isCancelled, isDiscarded }: ResponseTask, revision: number): void {
    this.revision = revision;
    this.task = { ...this.task, isCancelled, isDiscarded };
    this.#apply();
  }

  #apply(): void {
    if (this.#isLeft || this.task.isDiscarded) this.#making?.discard();
    else if (this.task.isCancelled) void this.#making?.cancel();
  }

  /** Another server continues it: nothing more is stored. */
  leave(): void {
    this.#isLeft = true;
    this.#apply();
    this.#place.over();
  }

  /** Stores new events in a moment, and whatever comes meanwhile with them. */
  #storeSoon(events: EventLog): void {
    if (this.#storing !== null || this.#isLeft || events.frames.length === this.#storedFrames) return;
    this.#storing = delay(GATHER_MS)
      .then(() => this.#store(events))
      .catch((error: unknown) => {
        if (error instanceof TakenOverError) this.leave();
      })
      .finally(() => {
        this.#storing = null;
        this.#storeSoonUnlessAway(events);
      });
  }

  #storeSoonUnlessAway(events: EventLog): void {
    // The next events, or the end, try a store again that was away.
    if (this.#writer !== null) this.#storeSoon(events);
  }

  /** Stores new events, after those that are being stored. */
  #store(events: EventLog): Promise<void> {
    this.#stored = this.#stored.catch(() => {}).then(() => this.#storeNext(events));
    return this.#stored;
  }

  async #storeNext(events: EventLog): Promise<void> {
    if (this.#isLeft || events.frames.length === this.#storedFrames) return;
    this.#unsure ??= this.#next(events);
    const { bytes, frames } = this.#unsure;
    await this.#append(bytes);
    this.#unsure = null;
    this.#storedBytes += bytes.length;
    this.#storedFrames = frames;
  }

  #next({ frames }: EventLog): { bytes: Buffer; frames: number } {
    return { bytes: Buffer.from(frames.slice(this.#storedFrames).join('')), frames: frames.length };
  }

  async #append(bytes: Buffer): Promise<void> {
    try {
      // After a loss of the connection it may have been stored without a confirmation.
      const isStored =
        this.#writer === null && (await this.#place.eventBytes()) === this.#storedBytes + bytes.length;
      if (isStored) return;
      this.#writer ??= await this.#place.content(this.#storedBytes);
      await this.#writer.append(bytes);
    } catch (error) {
      this.#writer = null;
      throw error;
    }
  }

  /**
   * Keeps what was made, unless another server has the task. Who deletes the response marks its task first, and then takes away what is
   * kept; so what was marked while it was being kept is taken away here, and what is marked later there.
   *
   * @param keep stores the response; may be called again
   * @param forget takes away what `keep` has stored
   */
  async finish(keep: () => Promise<void>, forget: () => Promise<void>): Promise<void> {
    try {
      while (!this.#isLeft && !(await this.#finished(keep, forget))) await delay(AWAY_MS);
    } finally {
      this.#place.over();
    }
  }

  /** False where the store cannot be reached. */
  async #finished(keep: () => Promise<void>, forget: () => Promise<void>): Promise<boolean> {
    try {
      await this.#storing;
      const events = this.#making?.events ?? null;
      while (events !== null && !this.#isLeft && events.frames.length > this.#storedFrames)
        await this.#store(events);
      if (!(await this.#place.confirm())) return true;
      await keep();
      if (!(await this.#place.confirm())) return true;
      if (this.task.isDiscarded) await forget();
      await this.#place.remove();
      return true;
    } catch (error) {
      if (error instanceof TakenOverError) return true;
      if (!(error instanceof StoreError) || error.kind !== 'away') throw error;
      // Where the store was erased its events can no longer be stored, and are no longer requested.
      return !(await this.#place.confirm().catch(() => true));
    }
  }
}
