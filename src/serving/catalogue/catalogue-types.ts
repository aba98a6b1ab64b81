import type { HubReach } from '../../hub/remote-models.js';
import type { Expectation } from './expectation.js';

/**
 * Where a model is.
 *
 *   loaded        it answers
 *   stored        its files are here
 *   downloading   they are coming
 *   partial       some are here, and a download goes on from there
 *   absent        the hub has them
 */
export type EntryState = 'loaded' | 'stored' | 'downloading' | 'partial' | 'absent';

/** A model that this machine has, or could have. */
export interface CatalogueEntry {
  /** ORG/NAME or ORG/NAME:QUANT, or what a model of the folder is called. */
  name: string;
  state: EntryState;
  /** Bytes of its files; null: not known. */
  bytes: number | null;
  /** Bytes of them that are here; null: all, or none. */
  doneBytes: number | null;
  /** Bytes that come each second; null: nothing is coming. */
  bytesPerSecond: number | null;
  /** Null: it is not known what the model takes. */
  expectation: Expectation | null;
  /** Why its latest download failed, or it cannot be used; null: nothing is known against it. */
  problem: string | null;
  /** Tokens of its longest sequence; null: not known. */
  contextTokens: number | null;
}

export interface Catalogue {
  entries: readonly CatalogueEntry[];
  /** Models that the list leaves out. */
  more: number;
  /** Bytes of memory for the models that are loaded on demand. */
  memoryBytes: number;
  /** Bytes that memory gives a second to the threads that compute; null: not measured yet. */
  bytesPerSecond: number | null;
  hub: HubReach;
}
