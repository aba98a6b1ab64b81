/** What a former answers. */
export interface Formed<Entry, Batch> {
  /** The batch that goes now; null: none. */
  batch: Batch | null;
  /** Which of the free instances is to run it. Absent: the first of them. */
  instance?: number;
  /** Entries that will be in no batch, each with the reason. */
  refused: readonly Refusal<Entry>[];
  /** When to ask again though nothing has come or ended meanwhile, where there is no batch; null: never. */
  wakeAtUs: number | null;
}

export interface Refusal<Entry> {
  entry: Entry;
  error: Error;
}

/**
 * Says what the next batch is: a state machine that holds what waits. It reads no clock; times are microseconds on one clock
 * that never goes back.
 */
export interface BatchFormer<Entry, Batch> {
  /** An entry begins to wait. @throws an error that refuses it */
  add(entry: Entry, nowUs: number): void;
  /**
   * An instance was given a batch with these and will not begin with it: they wait again, in front of those who came later, as long as
   * they have waited. Absent: the batch stays as it is.
   */
  putBack?(entries: readonly Entry[]): void;
  /**
   * This entry's answer is no longer wanted; for an entry that is already in a batch, nothing is to be done.
   */
  remove(entry: Entry, nowUs: number): void;
  /**
   * @param free instances that may have a batch now, the one with the fewest first; none: it is only asked who is refused
   * @param isDraining nothing will come any more, so nothing is worth waiting for
   */
  form(nowUs: number, free: readonly number[], isDraining: boolean): Formed<Entry, Batch>;
  /**
   * When the instance would have a batch if it were free: `nowUs` or earlier where it would now; Infinity: never, unless something comes or ends. Of a
   * former whose instances have turns.
   */
  goesAtUs?(nowUs: number, instance: number, isDraining: boolean): number;
  /** The batch is over: it has its answer, or never will. Of a former whose entries depend on those before them. */
  settle?(batch: Batch, nowUs: number): void;
  /**
   * The worker of an instance runs, or is lost with whatever it held; batches that it had are settled before. Of a former whose batches belong
   * to an instance: it never gets one back, so its host is to give instances one batch at a time.
   */
  noteInstance?(instance: number, isRunning: boolean, nowUs: number): void;
  /** There is one more instance, whose worker does not run yet, under the number of one that is gone or the next one. */
  addInstance?(instance: number): void;
  /** The instance is to go: only what belongs to it comes to it. */
  retireInstance?(instance: number): void;
  /** Something that belongs to the instance may still come to it. Absent: nothing ever does. */
  needsInstance?(instance: number): boolean;
}

/** The answer of a former for which nothing is to do. */
export const NO_BATCH = { batch: null, refused: [], wakeAtUs: null } as const;
