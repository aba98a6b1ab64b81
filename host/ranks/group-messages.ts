import type { GroupShape } from '../../engine/ranks/rank-shape.js';
import type { GroupAddress } from './group-address.js';

/** Start data of the thread that holds a rank's connections. */
export interface GroupThreadData {
  address: GroupAddress;
  secret: string | null;
  shape: GroupShape;
  rank: number;
  build: string;
  joinLimitMs: number;
  /** Most milliseconds of one wait for another rank. */
  limitMs: number;
}

/** Messages from that thread. */
export type FromGroupThread =
  /** All ranks have met; `path` is the memory of this one. */
  | { type: 'joined'; path: string }
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
