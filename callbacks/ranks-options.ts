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
