/**
 * When the instances of a host may run a batch, where that takes more than their worker: they have turns, which they may share with instances of other
 * hosts. An instance that has its turn keeps it until its batch is over.
 */
export interface InstanceTurns {
  /** The instance has a batch to run as soon as it is its turn, or has none. Of one that has its turn nothing changes. */
  want(instance: number, isWanted: boolean): void;
  /** Its batch is over, its worker is lost, or the batch could not be given to it. */
  release(instance: number): void;
  /** Gives turns to those that can have them now. */
  go(): void;
}

/** Gives an instance, whose turn it is, its batch. False: there is none any more. */
export type RunTurn = (instance: number) => boolean;
