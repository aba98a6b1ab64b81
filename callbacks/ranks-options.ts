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
  /** Known to all ranks and nobody else; needed with host:port. The connections are encrypted with keys that come of it. */
  secret?: string;
  /**
   * 'rank0', the default: the callbacks of rank 0 are called, and those of the others are not. 'everyRank': every rank's
   * getInferenceRequests and pollStopSignals are called and must bring the same, else the group ends; every rank's sendResponse gets
   * every response. returnBatchManagerStats is always rank 0's.
   */
  requests?: 'rank0' | 'everyRank';
  /** Milliseconds in which all ranks must have come; default 120 000. */
  joinTimeoutMs?: number;
}

export const DEFAULT_JOIN_TIMEOUT_MS = 120_000;

/** A rank's place in its group, as its worker is told it. */
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
}
