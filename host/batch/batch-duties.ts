import type { BatchFormer } from './batch-former.js';
import type { BatchInstance } from './batch-instance.js';
import type { InstanceTurns, RunTurn } from './instance-turns.js';

/** A request from its submission until it has its answer or has failed. The host sets the first two fields. */
export interface BatchEntry {
  /** An instance has been given some of it. */
  hasStarted: boolean;
  /** Leaves the entry's AbortSignal alone again. */
  release: (() => void) | null;
  /** It has failed; called once, and nothing follows. */
  fail(error: unknown): void;
}

/** A batch as an instance is sent it. */
export interface PackedBatch<Command> {
  command: Command;
  /** Buffers of the command that need not be copied to a thread. */
  transfer: readonly ArrayBuffer[];
}

/** What a batch host does not know of the work that it has done. */
export interface BatchDuties<Entry, Batch, Info, Message extends { type: string }, Command> {
  readonly former: BatchFormer<Entry, Batch>;
  /** Turns of the instances; absent: an instance that is free runs a batch as soon as there is one. The host gives each one batch at a time. */
  turns?(run: RunTurn): InstanceTurns;
  /** An instance that was to go, or could not be loaded, is gone: its number may be given again. */
  noteRemoved?(instance: number): void;
  /** All instances run: `ready` resolves with what the first says of itself. Called again with what a new worker says. */
  noteReady(info: Info): void;
  /** Entries of which the batch has something. */
  entriesOf(batch: Batch): Iterable<Entry>;
  /**
   * Called again for a batch that an instance lost before it began with it.
   * @param slot of its claim in the memory that the worker was given; null: it is not taken back
   */
  pack(batch: Batch, slot: number | null): PackedBatch<Command>;
  /** An instance begins with the batch; called again where that is lost before it really does. */
  noteBegun?(batch: Batch): void;
  /** A request has failed while its batch is with the instance, which may be notified. */
  noteGone?(entry: Entry, batch: Batch, instance: BatchInstance<Batch, Info, Message, Command>): void;
  /**
   * The batch ends without an answer: an instance was lost over it, it cannot be sent, its entries wait
   * again, or its answer is no longer wanted.
   */
  drop?(batch: Batch): void;
  /**
   * The message ends the batch. The instance gets its next one before `deliver` hands out what the message brings; buffers
   * that the next one can use are taken out of the message here.
   */
  endsBatch(message: Message, batch: Batch): boolean;
  deliver(
    message: Message,
    batch: Batch | null,
    instance: BatchInstance<Batch, Info, Message, Command>,
  ): void;
  /** What an entry fails with whose batch was being computed when the instance was lost. */
  lostError(error: Error): Error;
}
