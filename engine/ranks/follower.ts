import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { codeOf } from '../../base/skein-error.js';
import type { LoadableEngine } from '../executors/executor-kind.js';
import { NativeExecutor } from '../executors/native/native-executor.js';
import { type GroupHandle, RANKS_LOST, type RankSeat } from '../sharding/group.js';
import { asInts, CALL_KINDS, type Call, CallReader } from './call-bytes.js';
import { readAdapter, readBatch, readOpen } from './call-codec.js';
import { modelName } from './model-name.js';

/** Milliseconds of one wait for a call, after which the follower shows that it is alive. */
const LOOK_MS = 200;

/** A rank that runs its part of what rank 0 decides. */
export class Follower {
  readonly #engine: LoadableEngine;
  readonly #seat: RankSeat & { group: GroupHandle };
  readonly #reader: CallReader;
  readonly #threads: number | undefined;
  #executor: NativeExecutor | null = null;
  #last = 0;
  #hasEnded = false;

  /** @param threads of this rank; default: as many as rank 0 says */
  constructor(engine: LoadableEngine, seat: RankSeat & { group: GroupHandle }, threads?: number) {
    this.#threads = threads;
    this.#engine = engine;
    this.#seat = seat;
    this.#reader = new CallReader(seat.group.call);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** True once this rank has its part of the model. */
  get isOpen(): boolean {
    return this.#executor !== null;
  }

  /** Waits for a call and runs it, or returns after a moment. @throws an error with the code RANKS_LOST at the group's end */
  turn(): void {
    const { group } = this.#seat;
    if (group.awaitCall(this.#last, LOOK_MS) === this.#last) return;
    const number = (this.#last + 1) >>> 0;
    this.#last = number;
    let result = 0;
    let problem = '';
    try {
      const call = this.#reader.read(number);
      if (call !== null) result = this.#run(call);
    } catch (error) {
      if (codeOf(error) === RANKS_LOST) throw error;
      problem = asSentence(messageOf(error));
    }
    group.answer(number, result, problem);
  }

  close(): void {
    this.#executor?.close();
    this.#executor = null;
    this.#seat.group.close();
  }

  #run({ kind, arrays }: Call): number {
    if (kind === CALL_KINDS.open) {
      this.#open(arrays);
      return 0;
    }
    if (kind === CALL_KINDS.end) {
      this.#hasEnded = true;
      return 0;
    }
    const executor = this.#executor;
    if (executor === null) throw new Error('There is no executor yet.');
    switch (kind) {
      case CALL_KINDS.forward:
        this.#orAbort('run a step', () => executor.follow(readBatch(arrays)));
        break;
      case CALL_KINDS.copyBlocks:
        this.#orAbort('copy blocks', () => executor.copyBlocks(asInts(arrays[0]!), asInts(arrays[1]!)));
        break;
      case CALL_KINDS.copyStates:
        this.#orAbort('copy states', () => executor.copyStates(asInts(arrays[0]!), asInts(arrays[1]!)));
        break;
      case CALL_KINDS.areStatesFinite:
        return executor.areStatesFinite(asInts(arrays[0]!)) ? 1 : 0;
      case CALL_KINDS.areFinite:
        return executor.areFinite(asInts(arrays[0]!)) ? 1 : 0;
      case CALL_KINDS.putAdapter: {
        const { slot, parts } = readAdapter(arrays);
        executor.putAdapter(slot, parts);
        break;
      }
      case CALL_KINDS.clearAdapter:
        executor.clearAdapter(asInts(arrays[0]!)[0]!);
        break;
      default:
        throw new Error(`Rank 0 called for ${kind}, which is no kind of call.`);
    }
    return 0;
  }

  #open(arrays: readonly Uint8Array[]): void {
    const { options, model } = readOpen(arrays);
    if (model !== modelName(this.#engine)) {
      throw new Error('It has another model than rank 0, or other weights; give all ranks the same engine.');
    }
    this.#executor?.close();
    this.#executor = new NativeExecutor(this.#engine, {
      ...options,
      threads: this.#threads ?? options.threads,
      seat: this.#seat,
    });
  }

  /** Rank 0 goes on without an answer, and has checked what it calls for: a rank that cannot follow ends the group. */
  #orAbort(what: string, follow: () => void): void {
    const { group, rank } = this.#seat;
    try {
      follow();
    } catch (error) {
      group.abort(`Rank ${rank} cannot ${what} as rank 0 does: ${messageOf(error)}`);
      throw error;
    }
  }
}
