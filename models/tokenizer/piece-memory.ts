import { TokenIdList } from './token-id-list.js';

/** Most UTF-16 units of a generation's pieces. Two generations take 8 MB with ids as in prose, 16 MB with an id for each unit. */
const MAX_UNITS = 2 ** 20;

export interface PieceMemoryOptions {
  /** UTF-16 units of a generation; default 2^20. */
  maxUnits?: number;
}

/** Ids of texts, one after the other in one list, and where those of each text are. */
interface Generation {
  ids: TokenIdList;
  spans: Map<string, readonly [start: number, end: number]>;
  units: number;
}

const emptyGeneration = (): Generation => ({ ids: new TokenIdList(), spans: new Map(), units: 0 });

/**
 * Ids of pieces of texts that were encoded lately, in two generations as WordMemory has them: agents send the same functions, and the
 * conversation so far, with every request.
 */
export class PieceMemory {
  readonly #maxUnits: number;
  #young = emptyGeneration();
  #old = emptyGeneration();

  constructor({ maxUnits = MAX_UNITS }: PieceMemoryOptions = {}) {
    this.#maxUnits = maxUnits;
  }

  /** The ids of a piece, for reading at once; undefined where it is not remembered. */
  get(piece: string): Int32Array | undefined {
    const known = idsIn(this.#young, piece);
    if (known !== undefined) return known;
    const older = idsIn(this.#old, piece);
    if (older !== undefined) this.set(piece, older);
    return older;
  }

  /** Remembers a piece, unless it would take half a generation. The text must be no view of a longer one, which would stay too. */
  set(piece: string, ids: Int32Array): void {
    const units = Math.max(piece.length, ids.length);
    if (units > this.#maxUnits / 2) return;
    if (this.#young.units + units > this.#maxUnits) {
      this.#old = this.#young;
      this.#young = emptyGeneration();
    }
    const { ids: all, spans } = this.#young;
    spans.set(piece, [all.length, all.length + ids.length]);
    all.append(ids);
    this.#young.units += units;
  }

  /** UTF-16 units of the pieces in it, or their ids where these are more. */
  get units(): number {
    return this.#young.units + this.#old.units;
  }
}

function idsIn({ ids, spans }: Generation, piece: string): Int32Array | undefined {
  const span = spans.get(piece);
  return span && ids.view(...span);
}
