import type { GroupShape } from './rank-shape.js';

/** One of the executors of a group that share the machine: number `index` of `count`. */
export interface PlaceOfRank {
  index: number;
  count: number;
}

/** A rank's place in its group, and the memory that it shares with the others. */
export interface RankSeat {
  shape: GroupShape;
  rank: number;
  /** The rank's number among those that share this machine's processors; absent: it has them to itself. */
  here?: PlaceOfRank;
  /** Absent only where an executor is measured. */
  group?: GroupHandle;
}

export interface GroupOptions {
  /** File of the group's memory, which createGroup made. */
  path: string;
  rank: number;
  size: number;
  /** Most milliseconds of one wait for another rank. */
  limitMs: number;
}

/** The addon's view of a group's memory, as one rank. Errors with the code of RANKS_LOST mean that the group is at its end. */
export interface GroupHandle {
  /** Memory for the bytes of calls. */
  readonly call: ArrayBuffer;
  /** Why the group was ended; null: it was not. */
  readonly abortReason: string | null;
  /** Rank 0: begins the next call, whose bytes lie in `call`. */
  ring(): void;
  /** Rank 0: waits for the answers of all others and returns the sum of their results. @throws the first rank's error */
  awaitAnswers(limitMs?: number): number;
  /** Rank 0: number of the last call that all others have answered. */
  answeredByAll(): number;
  /**
   * The others: waits for a call after number `last`; returns the number of the last one, or `last` after
   * timeoutMs.
   */
  awaitCall(last: number, timeoutMs: number): number;
  /** Answers a call; error: a sentence, empty where it went well. */
  answer(call: number, result: number, error: string): void;
  /** Ends all waits of all ranks, now and later. The first reason stays. */
  abort(reason: string): void;
  /** Lets the memory go once no executor has it; ends `watch`. */
  close(): void;

  // For a relay, which does in this memory what ranks elsewhere do in theirs.

  /** Calls back, some time later, when this rank has done something, and now and then besides. */
  watch(onActivity: () => void): void;
  /** Number of the last call that was begun. */
  callNumber(): number;
  /** Number of the last publication of a writer on a channel, and of the last that a reader has taken. */
  published(writer: number, channel: number): number;
  taken(reader: number, writer: number, channel: number): number;
  /** A copy of one of this rank's last two publications. */
  publication(channel: number, number: number): Uint8Array;
  answerOf(rank: number): { call: number; result: number; error: string };
  /** Begins the call of rank 0 whose bytes have been put into `call`. */
  relayCall(number: number): void;
  relayPublication(writer: number, channel: number, number: number, bytes: Uint8Array): void;
  relayTaken(reader: number, writer: number, channel: number, number: number): void;
  relayAnswer(rank: number, call: number, result: number, error: string): void;
}

/** Code of errors after which a group cannot go on. */
export const RANKS_LOST = 'SKEIN_RANKS_LOST';
