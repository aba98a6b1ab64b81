/**
 * The place of a manager in a group of managers, one in each process, that run one model together. The batch manager of TensorRT-LLM assumes
 * the same: as many processes as ranks, each with its own GptManager.
 */
export interface RanksOptions {
  /** From 0; rank 0 decides, and listens at the address. */
  rank: number;
  /** Number of ranks: tensorParallelSize x pipelineParallelSize. Where neither is given, all ranks share each layer. */
  size: number;
  /** A path with a /, for ranks of one machine that share memory; host:port of rank 0 for ranks that are connected by TCP. */
  address: string;
  /**
   * Known only to the ranks; needed with host:port. The connections are encrypted with keys that come of it.
   */
  secret?: string;
  /**
   * 'rank0', the default: the callbacks of rank 0 are called, and those of the others are not. 'everyRank': every rank's
   * getInferenceRequests and pollStopSignals are called and must bring the same, else the group ends; every rank's sendResponse gets
   * every response. returnBatchManagerStats is always rank 0's.
   */
  requests?: 'rank0' | 'everyRank';
  /**
   * Milliseconds in which all ranks must have come for the first time; default 120 000. A group that was there once waits without end for
   * ranks that it lost.
   */
  joinTimeoutMs?: number;
  /** Called at rank 0 with the ranks that it waits for, each time that they change, and with none when all are there. */
  onMissing?: (missing: MissingRanks) => void;
}

/** Ranks that rank 0 waits for. */
export interface MissingRanks {
  /** In ascending order; empty: all are there. */
  ranks: readonly number[];
  /** Where they are waited for. */
  address: string;
  /** Why the last one that came was refused, as a sentence; null: none was. */
  refused: string | null;
}

/** Whom a group waits for, as a clause: waiting for rank 1 at 10.0.0.1:7000. */
export function waitingFor({ ranks, address }: Pick<MissingRanks, 'ranks' | 'address'>): string {
  return `waiting for ${ranks.length === 1 ? 'rank' : 'ranks'} ${ranks.join(', ')} at ${address}`;
}

export const DEFAULT_JOIN_TIMEOUT_MS = 120_000;

/** Why a host takes no requests; null: no rank is missing. */
export function whyHeld(missing: MissingRanks): string | null {
  return missing.ranks.length === 0 ? null : `The group of ranks is not complete: ${waitingFor(missing)}.`;
}

/** A rank's place in its group, as its worker receives it. */
export interface SeatData {
  rank: number;
  tensorParallelSize: number;
  pipelineParallelSize: number;
  /** File of the memory that the group's ranks on this machine share. */
  path: string;
  /** Most milliseconds of one wait for another rank. */
  limitMs: number;
  /** Number of ranks that share this machine's memory and processors. */
  ranksHere: number;
}

/** Start data of a worker that follows rank 0. */
export interface FollowerData {
  enginePath: string;
  seat: SeatData;
  /** Threads of this rank; absent: as many as rank 0 says. */
  threads?: number;
}
