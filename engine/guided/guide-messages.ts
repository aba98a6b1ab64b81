import type { Guide } from '../../callbacks/guide.js';
import type { Automaton } from './automaton.js';

/** What the loop asks of the thread that follows guides. */
export type GuideRequest =
  /**
   * Sequences, numbered from `first` on, are to be guided by the same guide. Answered by `opened`, once their first masks
   * stand in `masks`: [rows x words], a row for each sequence; and where there is one, rows for a draft behind it.
   */
  | {
      type: 'open';
      first: number;
      count: number;
      guide: Guide;
      endTokens: Int32Array;
      masks: SharedArrayBuffer;
    }
  /**
   * The masks that sequences need next, each to be written to its row. `entries`, for each sequence: sequence, position,
   * count, draft length, 1 where `forced` is of use, `count` tokens, which stand at `position` of what the sequence has
   * generated (0 where they are all of them), and the tokens of its draft, whose masks go to the rows behind. Answered by
   * `masked` for each as soon as it is there, and then by `forced` if there is something to say.
   */
  | { type: 'mask'; step: number; entries: Int32Array }
  | { type: 'close'; first: number; count: number };

export type GuideReply =
  /** `error`: empty where the sequences can be guided. `isInvalid`: their guide is at fault. */
  | { type: 'opened'; first: number; error: string; isInvalid: boolean }
  /** Pairs (step, sequence) whose masks are there, and sequences that get none any more. */
  | { type: 'masked'; done: Int32Array; failures: readonly GuideFailure[] }
  /**
   * What the grammar leaves no choice about. `entries`: sequence, position, a token that may come to stand there, count, and
   * the `count` tokens that then come behind it.
   */
  | { type: 'forced'; step: number; entries: Int32Array };

export interface GuideFailure {
  sequence: number;
  error: string;
  /** The request's guide is at fault. */
  isInvalid: boolean;
  /** Where it is one of its tokens that does not follow the guide: that, and which of the generated ones it is. */
  stray?: { token: number; place: number };
}

/** The loop's end of the thread. Nothing of it needs an event loop. */
export interface GuideThread {
  /** It has ended, whatever was asked of it; `start` starts another one. */
  readonly isDead: boolean;
  /** The first sequence of the guide that it was busy with when last heard of; -1: none. Also when it is dead. */
  readonly busyWith: number;
  start(): void;
  /** Ends it, with all that it was asked. */
  stop(): void;
  post(request: GuideRequest): void;
  /** The next reply that is there; undefined: none. */
  receive(): GuideReply | undefined;
  /** Returns true when a reply may be there or the thread has died, and false after `timeoutMs` without either. */
  wait(timeoutMs: number): boolean;
}

export const REQUEST_BELL = 0;
export const REPLY_BELL = 1;
/** 1 once the thread, or the one that reads guides for it, has ended. */
export const DEAD = 2;
/** One more than the first sequence of the guide that the thread follows just now; 0: none. */
export const BUSY_WITH = 3;
/** The same of the thread that reads guides. */
export const READING = 4;
export const CONTROL_CELLS = 5;

/** What the thread that follows guides asks of the one that reads them. */
export interface ReadingRequest {
  key: string;
  guide: Guide;
  /** The sequence for which it is read. */
  first: number;
}

export interface ReadingReply {
  key: string;
  /** null: it cannot be followed, or not be read. */
  automaton: Automaton | null;
  error: string;
  isInvalid: boolean;
}

/** Words of the mask of one row. */
export function wordsOfMask(vocabSize: number): number {
  return Math.ceil(vocabSize / 32);
}
