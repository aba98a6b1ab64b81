import type { GroupAddress } from '../../callbacks/group-address.js';
import type { GroupShape } from '../../engine/sharding/rank-shape.js';

/** Start data of the thread that holds a rank's connections. */
export interface GroupThreadData {
  /** Engine directory, by which ranks know that they have the same model. */
  enginePath: string;
  address: GroupAddress;
  secret: string | null;
  shape: GroupShape;
  rank: number;
  build: string;
  /** Most milliseconds until all have met; null: they are waited for without end. */
  joinLimitMs: number | null;
  /** Most milliseconds of one wait for another rank. */
  limitMs: number;
}

/** Messages from that thread. */
export type FromGroupThread =
  /** All ranks have met; `path` is the memory of this one. */
  | { type: 'joined'; path: string }
  /** Rank 0 waits for these ranks. `refused`: why the last one that came was not taken. */
  | { type: 'missing'; ranks: number[]; refused: string | null }
  /** The group is at its end: a rank is gone. */
  | { type: 'lost'; reason: string }
  /** Another rank's host sent this. */
  | { type: 'message'; rank: number; message: unknown };

/** Messages to it. */
export type ToGroupThread =
  /** Ends it; reason: why the others have to end too, null where the group has ended well. */
  | { type: 'end'; reason: string | null }
  /** To the host of a rank, or of all others. */
  | { type: 'message'; rank: number | 'all'; message: unknown };
